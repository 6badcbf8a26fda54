"""The keyword arguments of `flowevolve.optimize`: their types, and what task and configuration they describe."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, Generic, Literal, Required, TypedDict

from pydantic import ValidationError

from flowevolve._util import clock as clocks
from flowevolve._util.errors import InputError
from flowevolve._util.registry import did_you_mean
from flowevolve.config.key_errors import misplaced_key
from flowevolve.config.llm import LLMSettings
from flowevolve.config.presets import Preset
from flowevolve.config.run import WORLDS_OF_TASKS, Config, parse_config
from flowevolve.core.budget import Budget
from flowevolve.core.policies import StalenessPolicy
from flowevolve.core.task import Task
from flowevolve.runner.argument_hints import ELSEWHERE, check_prices, model_hint
from flowevolve.runner.task_checks import check_parts, check_task
from flowevolve.tasks.judging import Metric, OnError
from flowevolve.tasks.metric import MetricTask, Program
from flowevolve.tasks.rows import Rows, RowType


class LLM(LLMSettings):
    """A model behind an OpenAI-compatible endpoint: ``LLM("Qwen/Qwen3-8B", base_url="http://localhost:8000/v1")``.

    With ``backend="vllm"`` and no ``base_url``, the run starts a vLLM for it. For OpenAI the name alone is enough.
    Takes every setting of a config's ``[llm]`` section by name; docs/reference/config.md explains each:

    - where: ``backend`` (``"openai"``, ``"vllm"``, ``"litellm"``), ``base_url``, ``base_urls``, ``azure_api_version``,
      ``api_key_env``, ``api_key_file``, ``transport``, ``unlisted_models``, ``settings`` (of a plug-in's backend)
    - what is asked: ``temperature``, ``max_tokens``, ``send_seed``, ``send_priority``, ``extra``, ``enable_thinking``,
      ``reasoning_effort``, ``thinking``, ``thinking_tokens``
    - how long: ``timeout_seconds``, ``patience_seconds``, ``stream``, ``idle_seconds``, ``max_reply_bytes``
    - how much at once: ``concurrency``, ``requests_per_minute``, ``tokens_per_minute``, ``retries``, ``hedge``
    - ``roles``: other models for some work, ``roles={"reflection": "gpt-5"}``
    - ``prices``: dollars per million tokens, ``prices={"gpt-5-mini": {"input": 0.25, "output": 2.0}}``, or
      ``prices_file``, a file that has them
    - ``cache``: a file with replies that need not be paid for again, ``cache={"path": "replies.sqlite"}``

    Raises:
        InputError: naming the setting that is wrong.
    """

    def __init__(self, model: str, **settings: object) -> None:
        super().__init__(**{"backend": "openai", "model": model, **settings})  # type: ignore[arg-type]  # pydantic checks

    @classmethod
    def _describe(cls, error: ValidationError) -> str:
        return misplaced_key(error) or super()._describe(error)


class PromptArguments(TypedDict, Generic[RowType], total=False):
    """A prompt, rows and a metric, in place of a task; `flowevolve.tasks.metric.MetricTask` explains each."""

    prompt: str | Path | Mapping[str, str]
    train: Rows[RowType]
    val: Rows[RowType]
    test: Rows[RowType]
    metric: Metric[RowType]
    input: str
    program: Program[RowType]
    on_error: OnError


class Arguments(PromptArguments[RowType], Generic[RowType], total=False):
    """The keyword arguments of `optimize`, in addition to a task and the name of an algorithm."""

    llm: LLM | Literal["simulated"] | None
    budget: Required[Budget]
    mode: Literal["stream", "sync"]
    preset: Preset
    max_in_flight: int | Literal["auto"]
    staleness: StalenessPolicy | str
    settings: Mapping[str, object]
    seed: int
    clock: clocks.Clock
    out: str | Path
    resume: bool
    progress: bool
    watch: bool


DEFAULTS: dict[str, object] = {
    **dict.fromkeys(name for name in Arguments.__annotations__ if name != "budget"),
    "on_error": "stop",
    "preset": "default",
    "settings": {},
    "seed": 0,
    "clock": "real",
    "resume": False,
    "progress": True,
    "watch": False,
}
"""The defaults that the signature shows; None if the default depends on other arguments."""


def check_names(arguments: Arguments[Any]) -> None:
    """Raises: InputError if an argument is unknown or is of the wrong kind, or there is no budget."""
    known = ["task", "algorithm", *Arguments.__annotations__]
    for name in arguments:
        if name not in known:
            raise InputError(f"optimize takes no {name!r}; {ELSEWHERE.get(name) or did_you_mean(name, known)}")
    budget: object = arguments.get("budget")
    if not isinstance(budget, Budget):
        wrong = "missing" if budget is None else repr(budget)
        raise InputError(f"optimize: budget is {wrong}; give one, such as flowevolve.Budget(minutes=10)")
    out = arguments.get("out")
    if out == "" or not isinstance(out, str | Path | None):
        raise InputError(f"optimize: out is {out!r}; give the path of a directory")
    if arguments.get("resume") and out is None:
        raise InputError("optimize: resume goes on with the run in a directory; give that directory as out=")
    if arguments.get("watch") and out is None:
        raise InputError("optimize: watch shows the run in a directory; give that directory as out=")
    settings: object = arguments.get("settings", {})
    if not isinstance(settings, Mapping):
        raise InputError(f"optimize: settings is {settings!r}; give the algorithm's settings by name, as a mapping")
    if "name" in settings:
        raise InputError(f"optimize: settings: 'name' is an argument of its own; give algorithm={settings['name']!r}")
    mode: object = arguments.get("mode")
    if mode == "lockstep":
        raise InputError("optimize: mode is 'lockstep'; give 'sync', which runs in lockstep, or 'stream'")
    staleness = arguments.get("staleness")
    if not isinstance(staleness, str | None) and not callable(getattr(staleness, "decide", None)):
        raise InputError(f"optimize: staleness is {staleness!r}; give the name of a policy, or an object with decide()")
    llm: object = arguments.get("llm")
    if not isinstance(llm, LLM | None) and llm != "simulated":
        raise InputError(f"optimize: llm is {llm!r}; {model_hint(llm)}")


def task_of(task: Task | str | None, arguments: Arguments[Any]) -> Task | str:
    """The task, or its name.

    Raises:
        InputError: if two are given, or the arguments for one are incomplete.
    """
    prompted = [name for name in PromptArguments.__annotations__ if name in arguments]
    if not prompted:
        return _checked_task(task)
    if task is not None:
        raise InputError(f"optimize: both a task and {', '.join(prompted)} are given; leave out one of them")
    for name in ("prompt", "train", "metric"):
        if name not in prompted:
            raise InputError(f"optimize: {name} is missing; prompt=, train= and metric= go together")
    if arguments.get("llm") is None:
        raise InputError(
            'optimize: llm is missing; give flowevolve.LLM("gpt-5-mini"), say, or "simulated" to see a run without a '
            "model (a simulated model knows nothing of your rows)"
        )
    return MetricTask(
        arguments["prompt"],
        arguments["train"],
        arguments["metric"],
        val=arguments.get("val"),
        test=arguments.get("test"),
        input=arguments.get("input"),
        program=arguments.get("program"),
        on_error=arguments.get("on_error", "stop"),
        seed=_seed(arguments),
    )


def _seed(arguments: Arguments[Any]) -> int:
    """The seed as an integer of Python's own. Raises: InputError if it is no whole number."""
    seed: object = arguments.get("seed", 0)
    if not isinstance(seed, Integral):
        raise InputError(f"optimize: seed is {seed!r}; give a whole number")
    return int(seed)


def _checked_task(task: Task | str | None) -> Task | str:
    """Raises: InputError if it is neither a task nor a name."""
    if isinstance(task, str | None):
        return task or "house_style"
    check_task(task, "optimize")
    return task


def config_of(given_task: Task | str, algorithm: str, arguments: Arguments[Any]) -> Config:
    """The configuration that the arguments describe. Raises: InputError if it can't be run."""
    staleness = arguments.get("staleness")
    sections: dict[str, object] = {
        "seed": _seed(arguments),
        "clock": arguments.get("clock", "real"),
        "preset": arguments.get("preset", "default"),
        "watch": arguments.get("watch", False),
        "algorithm": {
            **arguments.get("settings", {}),
            "name": algorithm,
            **{name: arguments[name] for name in ("mode", "max_in_flight") if arguments.get(name) is not None},
        },
        "budget": arguments["budget"],
        "held_out": arguments.get("test") is not None,
    }
    if isinstance(given_task, str):
        sections["task"] = {"name": given_task}
    if isinstance(staleness, str):
        sections["staleness"] = {"policy": staleness}
    if isinstance(llm := arguments.get("llm"), LLM):
        sections["llm"] = llm
    else:
        sections["sim"] = _simulated(given_task, arguments.get("clock", "real"))
    config = parse_config(sections, "optimize")
    check_prices(config)
    return config


def _simulated(task: Task | str, clock: clocks.Clock) -> dict[str, object]:
    """The ``[sim]`` section, whose model can write what the task evolves, if that is an object."""
    if isinstance(task, str):
        world = None
    else:
        check_parts(task)
        world = WORLDS_OF_TASKS.get(task.seed().kind)
    return {
        **({} if world is None else {"world": world}),
        **({"profile": "fast-demo"} if clock == "real" else {}),
    }
