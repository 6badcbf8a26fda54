"""What the commands that carry out a run share: reading its configuration, and showing its progress and its result."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, count
from pathlib import Path

import typer
from prometheus_client import disable_created_metrics, start_http_server
from rich.console import Console

from flowevolve._util import clock
from flowevolve._util.console import PlainConsole
from flowevolve._util.errors import EngineError, FlowevolveError, InputError
from flowevolve.cli.terminal import console, print_json, print_plain
from flowevolve.config.backends import SHIPPED_BACKENDS
from flowevolve.config.roles import model_names
from flowevolve.config.run import Config, load_config
from flowevolve.core.stop_reasons import INTERRUPTED
from flowevolve.journal.files import writing
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.run_directory import RESULT
from flowevolve.page.report.report import REPORT, write_report
from flowevolve.runner.answered import unanswered_error
from flowevolve.runner.assemble import problem_notes
from flowevolve.runner.clients import SideTask
from flowevolve.runner.interrupts import until_interrupted
from flowevolve.runner.llm import endpoints, make_roles
from flowevolve.runner.overview import read_overview
from flowevolve.runner.problem_folder import load_folder
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers
from flowevolve.runner.vllm_server import starts_vllm
from flowevolve.telemetry.logs import log_event
from flowevolve.telemetry.metrics import Metrics
from flowevolve.telemetry.progress import LiveTable, Progress, lines
from flowevolve.telemetry.summary import summarize
from flowevolve.telemetry.traffic_metrics import TrafficMetrics
from flowevolve.vllm.server import ServerChange


@dataclass(frozen=True, slots=True)
class Output:
    """Where the commands that carry out a run print its progress, and whether its result is printed as JSON."""

    console: Console
    as_json: bool

    def say(self, line: str) -> None:
        """Print a line as it is, without wrapping or colouring it."""
        self.console.print(line, highlight=False, soft_wrap=True)


def make_output(*, as_json: bool) -> Output:
    """With ``as_json`` standard output is for one JSON object, and all else goes to standard error."""
    return Output(PlainConsole(stderr=True) if as_json else console, as_json)


@contextmanager
def failure_as_json(output: Output, directory: Path | None) -> Iterator[None]:
    """A block whose failure is also reported in the JSON object, if one is to be printed."""
    try:
        yield
    except FlowevolveError as error:
        if output.as_json:
            named = None if directory is None else str(directory)
            print_json({"directory": named, "state": "failed", "exit_code": error.exit_code, "error": str(error)})
        raise


def load(config: Path, overrides: Sequence[str], say: Callable[[str], None] = print_plain) -> Config:
    """Load a config file or a problem folder, and print notes on the problem."""
    if config.is_dir():
        found = load_folder(config, overrides)
        settings, notes = found.config, found.notes
    else:
        settings = load_config(config, overrides)
        notes = tuple(problem_notes(settings))
    for note in (*notes, *added_times(settings, overrides)):
        say(f"note: {note}")
    return settings


def added_times(config: Config, overrides: Sequence[str]) -> list[str]:
    """A note if an override sets a time limit beside another one, which it does not replace."""
    budget = config.budget
    given = (("hours", budget.hours), ("minutes", budget.minutes), ("seconds", budget.seconds))
    times = [f"{amount:g} {unit}" for unit, amount in given if amount is not None]
    overridden = any(re.match(r"budget\.(hours|minutes|seconds)\b", each.strip()) for each in overrides)
    if not overridden or len(times) < 2:
        return []
    limit = budget.time_limit() or 0.0
    return [f"the budget's limits in time add up: {' and '.join(times)} are {limit / 60:.3g} minutes"]


def show(
    go: Callable[[Watchers, SideTask], Awaitable[Result]],
    config: Config,
    directory: Path,
    metrics_port: int | None,
    output: Output,
) -> None:
    """Carry out a run, and show its progress and its result."""
    progress: Progress = (
        LiveTable(output.console, config.budget)
        if output.console.is_terminal
        else lines(output.say, config.clock, config.budget)
    )
    metrics, traffic = Metrics(), TrafficMetrics()
    metrics.registry.register(traffic)

    def tell_server(change: ServerChange) -> None:
        output.say(f"{change.url}: {change.detail}")

    def tell_page(address: str) -> None:
        output.say(f"the live page: {address}")

    watchers = Watchers(
        (progress.event, log_event, metrics.event),
        (metrics.call, progress.call),
        (tell_server,),
        (traffic.watch, progress.watch),
        (output.say,),
        (tell_page,),
        (progress.tick,) if config.clock == "real" else (),
    )
    with _served(metrics, metrics_port), progress:
        interruptible = partial(until_interrupted, partial(go, watchers), parting=partial(_how_to_go_on, directory))
        try:
            result = clock.run(interruptible, clock=config.clock)
        except EngineError:
            if (directory / RESULT).is_file():
                output.say(f"once that is mended, to go on: flowevolve resume {directory}")
            raise
    _tell_end(result, config, directory, output)


def _tell_end(result: Result | None, config: Config, directory: Path, output: Output) -> None:
    """Print the result of a run, and end with its exit code; ``result`` is None if it was cut off.

    Raises:
        FlowevolveError: if no call of a model was answered.
    """
    code = INTERRUPTED.exit_code if result is None else result.report.stop_reason.exit_code
    unanswered = None if result is None else unanswered_error(result, config)
    if output.as_json:
        if unanswered is not None:
            raise unanswered
        print_json(_as_json(result, directory, code))
    elif result is None:
        output.say(_how_to_go_on(directory))
    else:
        console.print(summarize(result.to_json()))
        output.say(_page_of(directory))
        output.say(f"written to {directory}")
        if code:
            output.say(f"to go on: flowevolve resume {directory}")
        if unanswered is not None:
            raise unanswered
    if code:
        raise typer.Exit(code)


def _page_of(directory: Path) -> str:
    """Write the page of a run that has ended, and return a line about it."""
    try:
        return f"its page: {write_report([directory], directory / REPORT)}"
    except InputError as error:
        return f"its page can't be written: {error}"


def _how_to_go_on(directory: Path) -> str:
    """A line on a run that was cut off, and on how to resume it."""
    known = (directory / JOURNAL).is_file()
    return f"interrupted; to go on: flowevolve resume {directory}" if known else "interrupted before the run began"


def _as_json(result: Result | None, directory: Path, code: int) -> dict[str, object]:
    """What ``--json`` prints for a run that has ended; ``result`` is None if it was cut off."""
    if result is None:
        known = (directory / JOURNAL).is_file()
        found = read_overview(directory).to_json() if known else {"error": None}
        return {
            **found,
            "directory": str(directory),
            "state": "interrupted" if known else "not begun",
            "exit_code": code,
        }
    state = "interrupted" if result.stop_reason.leaves_work else "finished"
    return {"directory": str(directory), "state": state, "exit_code": code, **result.to_json()}


@contextmanager
def _served(metrics: Metrics, port: int | None) -> Iterator[None]:
    """Serve metrics on a port of this machine, if one is given.

    Raises:
        InputError: if the port can't be listened on.
    """
    if port is None:
        yield
        return
    # The times at which counters were created are of no use, and double the output.
    disable_created_metrics()  # type: ignore[no-untyped-call]  # of a library with types
    try:
        server, thread = start_http_server(port, addr="127.0.0.1", registry=metrics.registry)
    except OSError as error:
        raise InputError(f"--metrics-port {port}: this port can't be used: {error.strerror}. Choose another") from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def fresh_directory(config: Path) -> Iterator[Path]:
    """A new directory under runs/, which no other run that begins in the same second gets. If it is empty at the end,
    it is removed, and so is runs/ if that is empty then.
    """
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    first = Path("runs") / f"{config.resolve().stem}-{stamp}"
    with writing(first):
        for directory in chain([first], (first.with_name(f"{first.name}-{number}") for number in count(2))):
            with suppress(FileExistsError):
                directory.mkdir(parents=True)
                break
    try:
        yield directory
    finally:
        with suppress(OSError):
            directory.rmdir()
            directory.parent.rmdir()


def title(config: Config, task: str | None = None) -> str:
    """What is run, in words. ``task`` is the name of its task if that was given as an object."""
    return (
        f"{config.algorithm.name} ({config.algorithm.mode}) on {task or config.task.name}, {describe_backend(config)}"
    )


def describe_backend(config: Config) -> str:
    if config.llm.backend == "sim":
        sim = config.sim
        return f"simulated LLM (profile {sim.profile}, world {sim.world}, {config.clock} clock)"
    if starts_vllm(config):
        return f"{config.llm.model} on a vLLM of its own"
    if config.llm.backend == "replay":
        return "recorded replies"
    roles = make_roles(config).values()
    if config.llm.backend not in SHIPPED_BACKENDS:
        return f"{', '.join(model_names(roles))} on {config.llm.backend}"
    urls = dict.fromkeys(url for role in roles for model in role.models for url in endpoints(model.llm))
    return f"{', '.join(model_names(roles))} at {', '.join(urls)}"
