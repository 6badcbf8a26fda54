"""Running evolution from Python, in one call: `optimize` blocks, `optimize_async` is awaited. For more control there is
`flowevolve.Engine`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, Generic, Literal, Required, TypedDict

from pydantic import ValidationError
from typing_extensions import Unpack

from flowevolve._util import clock as clocks
from flowevolve._util.console import PlainConsole
from flowevolve._util.errors import FlowevolveError, FruitlessError, InputError, for_a_script
from flowevolve._util.registry import did_you_mean
from flowevolve.config.llm import LLMSettings
from flowevolve.config.presets import Preset
from flowevolve.config.run import WORLDS_OF_TASKS, Config, misplaced_key, parse_config
from flowevolve.core.budget import Budget
from flowevolve.core.policies import StalenessPolicy
from flowevolve.core.task import Task
from flowevolve.runner.answered import unanswered_error
from flowevolve.runner.argument_hints import ELSEWHERE, check_algorithm, check_prices, model_hint
from flowevolve.runner.clients import SideTask
from flowevolve.runner.interrupts import until_interrupted
from flowevolve.runner.plan import ProvidedObjects
from flowevolve.runner.result import Result
from flowevolve.runner.resume import is_run, resume as go_on
from flowevolve.runner.run import Watchers, run
from flowevolve.runner.shown_signature import shows_arguments
from flowevolve.runner.task_checks import check_parts, check_task
from flowevolve.tasks.judging import Metric, OnError
from flowevolve.tasks.metric import MetricTask, Program
from flowevolve.tasks.rows import Rows, RowType
from flowevolve.telemetry.progress import Lines, LiveTable, Progress, lines


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


_DEFAULTS: dict[str, object] = {
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


_SETTINGS_OF_TASKS = (
    "this task has settings, which a configuration gives: await flowevolve.run(flowevolve.load_config(path)); or give "
    "prompt=, train= and metric=, or an object as task"
)


@shows_arguments(Arguments, _DEFAULTS)
def optimize(
    task: Task | str | None = None, algorithm: str = "gepa", **arguments: Unpack[Arguments[RowType]]
) -> Result:
    """Evolve a prompt, or whatever a task is about, and return the result. Blocks.

    Ctrl-C finishes open work and returns the result so far, a second one cuts open work off, and a third ends the
    process, with exit code 130, if a function of the task does not return.

    Say what to evolve with ``prompt``, ``train`` and ``metric``, or with ``task``. `optimize_async` takes the same.

    What each argument means:

    - ``task``: A task object, or the name of a task; by default ``house_style``, a small one for trying things out.
    - ``algorithm``: The name of an algorithm; ``flowevolve list algorithms`` shows all.
    - ``prompt``: A text, the ``Path`` of a file, or several texts by name.
    - ``train``: Rows that edits are made from: mappings, a data frame, or the path of a file.
    - ``val``: Rows that candidates are scored on; by default half of ``train`` is split off.
    - ``test``: Rows that seed and best are scored on at the end, for the result's ``held_out``.
    - ``metric``: Scores the output for a row from 0 to 1, optionally with feedback in words; may be async.
    - ``input``: What the model is shown of a row, such as ``"{question}"``; by default the one column that is not an
      answer.
    - ``program``: An async function of a row and of ``ask(component, text)``, which makes several calls for the row.
    - ``on_error``: With ``"count"``, a row on which the metric or the program fails scores 0; by default the run ends.
    - ``llm``: The model: ``flowevolve.LLM("gpt-5-mini")``, or ``"simulated"`` (the default, but not with
      ``prompt``), which on the real clock answers twenty times as fast as a GPU would (profile ``fast-demo``).
    - ``budget``: When to stop, such as ``flowevolve.Budget(minutes=10)``. The one argument that is always needed.
    - ``mode``: ``"stream"``, or ``"sync"`` for rounds.
    - ``preset``: The preset that decides what is left open, such as ``mode``, ``max_in_flight`` and ``staleness``
      (`flowevolve.config.presets`).
    - ``max_in_flight``: How many flows may be open at once.
    - ``staleness``: The name of a staleness policy, or a policy object.
    - ``settings``: The algorithm's settings, by name.
    - ``seed``: The seed of all random numbers.
    - ``clock``: ``"virtual"`` lets simulated time pass at once.
    - ``out``: The run directory; by default there is none.
    - ``resume``: Go on with the run that is in ``out`` already: a script that was killed can simply be started
      again.
    - ``progress``: Show the run's progress on standard error.
    - ``watch``: Serve a live page of the run in ``out``; its address is printed on standard error.

    Raises:
        InputError: if the arguments can't be run, or an event loop is running: then await `optimize_async`.
        FlowevolveError: if the run failed. A run that goes to its end without an answer to any call has failed, too.
    """
    if clocks.is_running():
        raise InputError(
            "optimize: blocks, and an event loop runs here, as in a notebook: "
            "result = await flowevolve.optimize_async(...)"
        )
    try:
        result = clocks.run(_until_interrupted, task, algorithm, arguments, clock=arguments.get("clock", "real"))
    except FlowevolveError as error:
        raise for_a_script(error) from error.__cause__
    if result is None:
        raise KeyboardInterrupt
    return result


@shows_arguments(Arguments, _DEFAULTS)
async def optimize_async(
    task: Task | str | None = None, algorithm: str = "gepa", **arguments: Unpack[Arguments[RowType]]
) -> Result:
    """Like `optimize`, for notebooks and for code in which an event loop is running already.

    With ``clock="virtual"`` the run has its own event loop, in another thread, because time jumps there.
    """
    try:
        if arguments.get("clock", "real") == "virtual":
            return await clocks.run_beside(_evolve, task, algorithm, arguments, clock="virtual")
        return await _evolve(task, algorithm, arguments)
    except FlowevolveError as error:
        raise for_a_script(error) from error.__cause__


async def _until_interrupted(task: Task | str | None, algorithm: str, arguments: Arguments[Any]) -> Result | None:
    """The result, up to an interrupt if there is one; None if that came before the engine ran or after it ended."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread gets signals
        return await _evolve(task, algorithm, arguments)
    out = arguments.get("out")
    parting = "" if out is None else f"what was done is in {out}: to go on, start the script again with resume=True"
    return await until_interrupted(partial(_evolve, task, algorithm, arguments), parting=lambda: parting)


async def _evolve(
    task: Task | str | None, algorithm: str, arguments: Arguments[Any], side_task: SideTask | None = None
) -> Result:
    _check_names(arguments)
    check_algorithm(algorithm)
    given_task = _task(task, arguments)
    try:
        return await _evolve_task(given_task, algorithm, arguments, side_task)
    except InputError as error:
        if isinstance(given_task, str) and str(error).startswith("task."):
            raise InputError(f"{error} ({_SETTINGS_OF_TASKS})") from None
        raise
    except FruitlessError as error:
        if arguments.get("llm") == "simulated" and isinstance(given_task, MetricTask):
            raise FruitlessError(f"{error} (a simulated model knows nothing of your rows: a real one may do)") from None
        raise


def _config(given_task: Task | str, algorithm: str, arguments: Arguments[Any]) -> Config:
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


async def _evolve_task(
    given_task: Task | str, algorithm: str, arguments: Arguments[Any], side_task: SideTask | None
) -> Result:
    config, staleness = _config(given_task, algorithm, arguments), arguments.get("staleness")
    given = ProvidedObjects(
        None if isinstance(given_task, str) else given_task, None if isinstance(staleness, str) else staleness
    )
    out = arguments.get("out")
    directory = None if out is None else Path(out)
    shown = arguments.get("progress", True)
    before = directory if arguments.get("resume") and directory is not None and is_run(directory) else None
    if before is not None and shown:
        sys.stderr.write(f"going on with the run in {before}\n")
    with _progress(config, shown=shown) as progress:
        watchers = Watchers(
            (progress.event,),
            (progress.call,),
            machines=(_note,) if shown else (),
            pages=(_tell_page,),
            ticks=(progress.tick,) if config.clock == "real" else (),
        )
        if before is not None:
            result = await go_on(
                before,
                config=config,
                task=given.task,
                staleness=given.staleness,
                again=True,
                note=_note if shown else None,
                watchers=watchers,
                side_task=side_task,
            )
        else:
            result = await run(
                config,
                task=given.task,
                staleness=given.staleness,
                out=directory,
                watchers=watchers,
                side_task=side_task,
            )
    if (error := unanswered_error(result, config)) is not None:
        raise error
    return result


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


def _tell_page(address: str) -> None:
    sys.stderr.write(f"the live page: {address}\n")


def _note(said: str) -> None:
    sys.stderr.write(f"note: {said}\n")


def _progress(config: Config, *, shown: bool) -> Progress:
    if not shown:
        return Lines(lambda line: None)
    console = PlainConsole(stderr=True)
    write = partial(console.print, highlight=False, soft_wrap=True)
    return LiveTable(console, "", config.budget) if console.is_terminal else lines(write, config.clock, config.budget)


def _check_names(arguments: Arguments[Any]) -> None:
    """Raises: InputError if an argument is unknown or is of the wrong kind, or there is no budget."""
    known = ["task", "algorithm", *Arguments.__annotations__]
    for name in arguments:
        if name not in known:
            raise InputError(f"optimize: takes no {name!r}; {ELSEWHERE.get(name) or did_you_mean(name, known)}")
    budget = arguments.get("budget")
    if not isinstance(budget, Budget):
        raise InputError(f"optimize: budget is {budget!r}; give one, such as flowevolve.Budget(minutes=10)")
    out = arguments.get("out")
    if out == "" or not isinstance(out, str | Path | None):
        raise InputError(f"optimize: out is {out!r}; give the path of a directory")
    if arguments.get("resume") and out is None:
        raise InputError("optimize: resume goes on with the run in a directory; give it as out=")
    if arguments.get("watch") and out is None:
        raise InputError("optimize: watch shows the run in a directory; give it as out=")
    settings: object = arguments.get("settings", {})
    if not isinstance(settings, Mapping):
        raise InputError(f"optimize: settings is {settings!r}; give the algorithm's settings by name, as a mapping")
    if "name" in settings:
        raise InputError(f"optimize: settings: 'name' is an argument of its own; give algorithm={settings['name']!r}")
    mode: object = arguments.get("mode")
    if mode == "lockstep":
        raise InputError("optimize: mode is 'lockstep'; give 'sync' for rounds, or 'stream'")
    staleness = arguments.get("staleness")
    if not isinstance(staleness, str | None) and not callable(getattr(staleness, "decide", None)):
        raise InputError(f"optimize: staleness is {staleness!r}; give the name of a policy, or an object with decide()")
    llm: object = arguments.get("llm")
    if not isinstance(llm, LLM | None) and llm != "simulated":
        raise InputError(f"optimize: llm is {llm!r}; {model_hint(llm)}")


def _task(task: Task | str | None, arguments: Arguments[Any]) -> Task | str:
    """The task, or its name.

    Raises:
        InputError: if two are given, or the arguments for one are incomplete.
    """
    prompted = [name for name in PromptArguments.__annotations__ if name in arguments]
    if not prompted:
        return _checked_task(task)
    if task is not None:
        raise InputError(f"optimize: give a task, or {', '.join(prompted)}, not both")
    for name in ("prompt", "train", "metric"):
        if name not in prompted:
            raise InputError(f"optimize: {name} is missing: prompt=, train= and metric= go together")
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
