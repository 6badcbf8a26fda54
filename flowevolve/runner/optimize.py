"""Running evolution from Python, in one call. The async form is `flowevolve.run`, the open form `flowevolve.Engine`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from flowevolve._util import clock as clocks
from flowevolve._util.errors import InputError
from flowevolve._util.registry import describe_validation
from flowevolve.config.llm import LLMSettings
from flowevolve.config.presets import Preset
from flowevolve.config.run import misplaced_key, parse_config
from flowevolve.core.budget import Budget
from flowevolve.core.policies import StalenessPolicy
from flowevolve.core.task import Task
from flowevolve.runner.result import Result
from flowevolve.runner.resume import is_run, resume as go_on
from flowevolve.runner.run import ProvidedObjects, run


class LLM(LLMSettings):
    """A model behind an OpenAI-compatible endpoint: ``LLM("Qwen/Qwen3-8B", base_url="http://localhost:8000/v1")``.

    With ``backend="vllm"`` and no ``base_url``, on a vLLM that the run starts. Takes every setting of a config's
    ``[llm]`` section by name.

    Raises:
        InputError: naming the setting that is wrong.
    """

    def __init__(self, model: str, **settings: object) -> None:
        try:
            super().__init__(**{"backend": "openai", "model": model, **settings})  # type: ignore[arg-type]  # pydantic checks
        except ValidationError as error:
            known = list(LLMSettings.model_fields)
            raise InputError(f"LLM: {misplaced_key(error) or describe_validation(error, known=known)}") from None


def optimize(
    task: Task | str = "house_style",
    algorithm: str = "gepa",
    *,
    llm: LLM | None = None,
    budget: Budget,
    mode: Literal["stream", "sync"] | None = None,
    preset: Preset = "default",
    max_in_flight: int | Literal["auto"] | None = None,
    staleness: StalenessPolicy | str | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    clock: clocks.Clock = "real",
    out: Path | None = None,
    resume: bool = False,
) -> Result:
    """Evolve a task's artifact and return what was found. Blocks; inside an event loop await `flowevolve.run`.

    ``task`` and ``staleness`` are objects or names; ``preset`` decides what is left open, such as the mode, how many
    flows are open at a time and what becomes of stale items (`flowevolve.config.presets`). Without
    ``llm`` the simulated backend answers. ``settings`` are the algorithm's own; ``out`` is the run directory, by
    default none. With ``resume`` a run that is in ``out`` already is gone on with: a script that was killed can simply
    be started again (async form: `flowevolve.resume`).

    Raises:
        FlowevolveError: if the arguments can't be run, or the run failed.
    """
    sections: dict[str, object] = {
        "seed": seed,
        "clock": clock,
        "preset": preset,
        "algorithm": {**(settings or {}), "name": algorithm, **_given(mode=mode, max_in_flight=max_in_flight)},
        "budget": budget,
    }
    if isinstance(task, str):
        sections["task"] = {"name": task}
    if isinstance(staleness, str):
        sections["staleness"] = {"policy": staleness}
    if llm is not None:
        sections["llm"] = llm
    config = parse_config(sections, "optimize")

    given = ProvidedObjects(None if isinstance(task, str) else task, None if isinstance(staleness, str) else staleness)

    async def go() -> Result:
        if resume and out is not None and is_run(out):
            return await go_on(out, config=config, task=given.task, staleness=given.staleness, again=True)
        return await run(config, task=given.task, staleness=given.staleness, out=out)

    return clocks.run(go, clock=clock)


def _given(**settings: object) -> Mapping[str, object]:
    """Those that are not None."""
    return {name: value for name, value in settings.items() if value is not None}
