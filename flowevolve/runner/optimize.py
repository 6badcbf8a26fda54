"""Running evolution from Python, in one call: `optimize` blocks, `optimize_async` is awaited. For more control there is
`flowevolve.Engine`.
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

from typing_extensions import Unpack

from flowevolve._util import clock as clocks
from flowevolve._util.console import PlainConsole
from flowevolve._util.errors import FlowevolveError, FruitlessError, InputError, for_a_script
from flowevolve.config.run import Config
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.task import Task
from flowevolve.runner.answered import unanswered_error
from flowevolve.runner.argument_hints import algorithm_name
from flowevolve.runner.arguments import DEFAULTS, Arguments, check_names, config_of, task_of
from flowevolve.runner.clients import SideTask
from flowevolve.runner.ended_runs import in_script
from flowevolve.runner.failed_runs import note_what_was_found
from flowevolve.runner.interrupts import until_interrupted
from flowevolve.runner.plan import ProvidedObjects
from flowevolve.runner.result import Result
from flowevolve.runner.resume import is_run, resume as go_on
from flowevolve.runner.run import Watchers, run
from flowevolve.runner.shown_signature import shows_arguments
from flowevolve.tasks.metric import MetricTask
from flowevolve.tasks.rows import RowType
from flowevolve.telemetry.progress import Lines, LiveTable, Progress, lines

_SETTINGS_OF_TASKS = (
    "this task has settings, which a configuration gives: await flowevolve.run(flowevolve.load_config(path)); or give "
    "prompt=, train= and metric=, or an object as task"
)


@shows_arguments(Arguments, DEFAULTS)
def optimize(
    task: Task | str | None = None,
    algorithm: str | type[Algorithm] = "gepa",
    **arguments: Unpack[Arguments[RowType]],
) -> Result:
    """Evolve a prompt, or whatever a task is about, and return the result. Blocks.

    Ctrl-C finishes open work and returns the result so far, a second one cuts open work off, and a third ends the
    process, with exit code 130, if a function of the task does not return.

    Say what to evolve with ``prompt``, ``train`` and ``metric``, or with ``task``. `optimize_async` takes the same.

    What each argument means:

    - ``task``: A task object, or the name of a task; by default ``house_style``, a small one for trying things out.
    - ``algorithm``: The name of an algorithm (``flowevolve list algorithms`` shows all), or the class of your own.
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
        FlowevolveError: if the run failed; `result_of` returns what was found until then. A run that goes to its end
            without an answer to any call has failed, too.
    """
    if clocks.is_running():
        raise InputError(
            "optimize can't be called while an event loop runs, as in a notebook; write "
            "result = await flowevolve.optimize_async(...)"
        )
    try:
        result = clocks.run(_until_interrupted, task, algorithm, arguments, clock=arguments.get("clock", "real"))
    except FlowevolveError as error:
        note_what_was_found(error)
        raise for_a_script(error) from error.__cause__
    if result is None:
        raise KeyboardInterrupt(_how_to_go_on(arguments))
    return result


@shows_arguments(Arguments, DEFAULTS)
async def optimize_async(
    task: Task | str | None = None,
    algorithm: str | type[Algorithm] = "gepa",
    **arguments: Unpack[Arguments[RowType]],
) -> Result:
    """Like `optimize`, for notebooks and for code in which an event loop is running already.

    With ``clock="virtual"`` the run has its own event loop, in another thread, because time jumps there.
    """
    try:
        if arguments.get("clock", "real") == "virtual":
            return await clocks.run_beside(_evolve, task, algorithm, arguments, clock="virtual")
        return await _evolve(task, algorithm, arguments)
    except FlowevolveError as error:
        note_what_was_found(error)
        raise for_a_script(error) from error.__cause__


async def _until_interrupted(
    task: Task | str | None, algorithm: str | type[Algorithm], arguments: Arguments[Any]
) -> Result | None:
    """The result, up to an interrupt if there is one; None if that came before the engine ran or after it ended."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread gets signals
        return await _evolve(task, algorithm, arguments)
    return await until_interrupted(
        partial(_evolve, task, algorithm, arguments), parting=partial(_how_to_go_on, arguments)
    )


def _how_to_go_on(arguments: Arguments[Any]) -> str:
    """How a script goes on with a run that an interrupt has cut off; empty if nothing of the run was kept."""
    out = arguments.get("out")
    return "" if out is None else f"what was done is in {out}: to go on, start the script again with resume=True"


async def _evolve(
    task: Task | str | None,
    algorithm: str | type[Algorithm],
    arguments: Arguments[Any],
    side_task: SideTask | None = None,
) -> Result:
    check_names(arguments)
    name = algorithm_name(algorithm)
    given_task = task_of(task, arguments)
    try:
        return await _evolve_task(given_task, name, arguments, side_task)
    except InputError as error:
        if isinstance(given_task, str) and str(error).startswith("task."):
            raise InputError(f"{error} ({_SETTINGS_OF_TASKS})") from None
        raise
    except FruitlessError as error:
        if arguments.get("llm") == "simulated" and isinstance(given_task, MetricTask):
            explained = FruitlessError(f"{error} (a simulated model knows nothing of your rows, but a real one may)")
            explained.of_run = error.of_run
            raise explained from None
        raise


async def _evolve_task(
    given_task: Task | str, algorithm: str, arguments: Arguments[Any], side_task: SideTask | None
) -> Result:
    config, staleness = config_of(given_task, algorithm, arguments), arguments.get("staleness")
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
            traffic=(progress.watch,),
            notes=(_note,) if shown else (),
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
                names=in_script,
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


def _tell_page(address: str) -> None:
    sys.stderr.write(f"the live page: {address}\n")


def _note(text: str) -> None:
    sys.stderr.write(f"note: {text}\n")


def _progress(config: Config, *, shown: bool) -> Progress:
    if not shown:
        return Lines(lambda line: None)
    console = PlainConsole(stderr=True)
    write = partial(console.print, highlight=False, soft_wrap=True)
    return LiveTable(console, config.budget) if console.is_terminal else lines(write, config.clock, config.budget)
