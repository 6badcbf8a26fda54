"""Running evolution from Python, in one call. The async form is `flowevolve.run`, the open form `flowevolve.Engine`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from flowevolve import clock as clocks
from flowevolve.budget import Budget
from flowevolve.config import LLMSection, parse_config
from flowevolve.policies.staleness import StalenessPolicy
from flowevolve.result import Result
from flowevolve.run import run
from flowevolve.tasks.base import Task


class LLM(LLMSection):
    """A model behind an OpenAI-compatible endpoint: ``LLM("Qwen/Qwen3-8B", base_url="http://localhost:8000/v1")``.

    With ``backend="vllm"`` and no ``base_url``, on a vLLM that the run starts. Takes every setting of a config's
    ``[llm]`` section by name.
    """

    def __init__(self, model: str, **settings: object) -> None:
        super().__init__(**{"backend": "openai", "model": model, **settings})  # type: ignore[arg-type]  # pydantic checks


def optimize(
    task: Task | str = "house_style",
    algorithm: str = "gepa",
    *,
    llm: LLM | None = None,
    budget: Budget,
    mode: Literal["stream", "sync"] = "stream",
    max_in_flight: int = 16,
    staleness: StalenessPolicy | str = "guarded",
    settings: Mapping[str, object] | None = None,
    seed: int = 0,
    clock: clocks.Clock = "real",
    out: Path | None = None,
) -> Result:
    """Evolve a task's artifact and return what was found. Blocks; inside an event loop await `flowevolve.run`.

    ``task`` and ``staleness`` are objects or names; without ``llm`` the simulated backend answers. ``settings`` are the
    algorithm's own; ``out`` is the run directory, by default none.

    Raises:
        FlowevolveError: if the arguments can't be run, or the run failed.
    """
    sections: dict[str, object] = {
        "seed": seed,
        "clock": clock,
        "algorithm": {**(settings or {}), "name": algorithm, "mode": mode, "max_in_flight": max_in_flight},
        "budget": budget,
    }
    if isinstance(task, str):
        sections["task"] = {"name": task}
    if isinstance(staleness, str):
        sections["staleness"] = {"policy": staleness}
    if llm is not None:
        sections["llm"] = llm
    config = parse_config(sections, "optimize")

    async def go() -> Result:
        return await run(
            config,
            task=None if isinstance(task, str) else task,
            staleness=None if isinstance(staleness, str) else staleness,
            out=out,
        )

    return clocks.run(go, clock=clock)
