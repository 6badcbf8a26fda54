"""Evolve prompts and programs with LLMs, as a stream.

Exit codes: 0 done, 2 bad config or input, 3 backend unreachable, 4 task broken, 130 interrupted.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import anyio
import typer

from flowevolve._util import clock
from flowevolve._util.errors import FlowevolveError, InputError
from flowevolve.cli.list import list_command
from flowevolve.cli.new import new_app
from flowevolve.cli.sandbox import sandbox_app
from flowevolve.cli.serve import serve_command
from flowevolve.cli.terminal import plain_console
from flowevolve.config.backends import SHIPPED_BACKENDS
from flowevolve.config.roles import model_names
from flowevolve.config.run import Config, load_config, parse_config
from flowevolve.core.stop_reasons import INTERRUPTED
from flowevolve.journal.compact import compact
from flowevolve.journal.export import export
from flowevolve.journal.files import writing
from flowevolve.journal.reading import JOURNAL, Recorded
from flowevolve.journal.run_directory import read_result
from flowevolve.runner.assemble import endpoints, make_roles, make_sim, problem_notes
from flowevolve.runner.clients import SideTask
from flowevolve.runner.interrupts import until_interrupted
from flowevolve.runner.replay import Replayed, replay
from flowevolve.runner.result import Result
from flowevolve.runner.resume import resume
from flowevolve.runner.run import Watchers, check, run
from flowevolve.runner.vllm_server import starts_vllm
from flowevolve.sim.server import serve
from flowevolve.telemetry.comparison import compare
from flowevolve.telemetry.logs import configure_logs, log_event
from flowevolve.telemetry.progress import Lines, LiveTable, Progress
from flowevolve.telemetry.summary import summarize
from flowevolve.vllm.server import ServerChange

if TYPE_CHECKING:
    from flowevolve.telemetry.metrics import Metrics

LAST_PORT = 65535

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
console = plain_console()

ConfigPath = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="a TOML file, see docs/reference/config.md; or a problem folder, see docs/how-to/openevolve.md",
    ),
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="override a setting; may be repeated")
]
MetricsPort = Annotated[
    int | None, typer.Option(min=0, max=LAST_PORT, help="serve Prometheus metrics on this loopback port")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="log more than warnings")]

RunPath = Annotated[Path, typer.Argument(metavar="DIR", help="a run directory")]


@app.command("run")
def run_command(
    config: ConfigPath,
    overrides: Overrides = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="DIR[@VERSION]", help="start from the pool of another run")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="the run directory; by default a new one under runs/")] = None,
    events: Annotated[bool, typer.Option("--events", help="also write events.jsonl")] = False,
    metrics_port: MetricsPort = None,
    verbose: Verbose = False,
) -> None:
    """Run a configuration; Ctrl-C once finishes what is open and stops, twice stops at once."""
    configure_logs(logging.INFO if verbose else logging.WARNING)
    settings = _load(config, [*(overrides or ()), *_start(start)])
    with _fresh_directory(config) if out is None else nullcontext(out) as directory:
        console.print(_title(settings), highlight=False)

        async def go(watchers: Watchers, side_task: SideTask) -> Result:
            return await run(settings, out=directory, events=events, watchers=watchers, side_task=side_task)

        _show(go, settings.clock, directory, metrics_port)


def _load(config: Path, overrides: Sequence[str]) -> Config:
    """A config file, or a problem folder: what is to be known of the problem is printed."""
    if config.is_dir():
        from flowevolve.runner.folder import load_folder  # noqa: PLC0415 - slow to load

        found = load_folder(config, overrides)
        settings, notes = found.config, found.notes
    else:
        settings = load_config(config, overrides)
        notes = tuple(problem_notes(settings))
    for note in notes:
        _plain(f"note: {note}")
    return settings


def _start(named: str | None) -> list[str]:
    """``DIR[@VERSION]`` as overrides."""
    if named is None:
        return []
    directory, at, version = named.rpartition("@")
    if not at or not version.isdigit():
        directory, version = named, ""
    return [f"start.run={json.dumps(directory)}", *([f"start.version={version}"] if version else [])]


def _show(
    go: Callable[[Watchers, SideTask], Awaitable[Result]],
    clock_name: clock.Clock,
    directory: Path,
    metrics_port: int | None,
) -> None:
    """Carry out a run, showing how it goes and what it came to."""
    from flowevolve.telemetry.metrics import Metrics  # noqa: PLC0415 - slow to load
    from flowevolve.telemetry.traffic_metrics import TrafficMetrics  # noqa: PLC0415

    progress: Progress = LiveTable(console, "") if console.is_terminal else Lines(_plain)

    metrics, traffic = Metrics(), TrafficMetrics()
    metrics.registry.register(traffic)
    if metrics_port is not None:
        _serve_metrics(metrics, metrics_port)

    watchers = Watchers((progress.event, log_event, metrics.event), (metrics.call,), (_tell_server,), (traffic.watch,))
    with progress:
        result = clock.run(until_interrupted, partial(go, watchers), clock=clock_name)
    if result is None:
        known = (directory / JOURNAL).is_file()
        _plain(f"interrupted; to go on: flowevolve resume {directory}" if known else "interrupted before the run began")
        raise typer.Exit(INTERRUPTED.exit_code)
    console.print(summarize(result.to_json()))
    console.print(f"written to {directory}", highlight=False, soft_wrap=True)
    if result.report.stop_reason.exit_code:
        _plain(f"to go on: flowevolve resume {directory}")
        raise typer.Exit(result.report.stop_reason.exit_code)


@app.command("resume")
def resume_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="the run directory of a killed or stopped run")],
    overrides: Overrides = None,
    metrics_port: MetricsPort = None,
    verbose: Verbose = False,
) -> None:
    """Go on with a run where it was stopped or killed; --set may give it a larger budget or other workers."""
    configure_logs(logging.INFO if verbose else logging.WARNING)
    with Recorded(directory) as recorded:
        settings = parse_config(recorded.config, f"{directory}/config.toml")
    console.print(f"going on with {directory}: {_title(settings)}", highlight=False, soft_wrap=True)

    async def go(watchers: Watchers, side_task: SideTask) -> Result:
        return await resume(directory, changes=overrides or (), watchers=watchers, side_task=side_task)

    _show(go, settings.clock, directory, metrics_port)


@app.command("replay")
def replay_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="the run directory of a run, ended or going on")],
    overrides: Overrides = None,
    slots: Annotated[int | None, typer.Option(help="how many requests the server works on at once")] = None,
    out: Annotated[Path | None, typer.Option(help="leave a run directory here; by default none")] = None,
    verbose: Verbose = False,
) -> None:
    """Run a recorded run's replies and latencies again on the virtual clock: what if there were other workers?"""
    configure_logs(logging.INFO if verbose else logging.WARNING)

    async def go(side_task: SideTask) -> Replayed:
        watchers = Watchers(events=(log_event,))
        return await replay(
            directory, changes=overrides or (), slots=slots, out=out, watchers=watchers, side_task=side_task
        )

    replayed = clock.run(until_interrupted, go, clock="virtual")
    if replayed is None:
        raise typer.Exit(INTERRUPTED.exit_code)
    scores = not replayed.replies.stand_ins
    console.print(compare(replayed.recorded, replayed.replayed, scores=scores, notes=replayed.notes))
    if out is not None:
        console.print(f"written to {out}", highlight=False, soft_wrap=True)
    raise typer.Exit(replayed.result.report.stop_reason.exit_code)


@app.command("check")
def check_command(config: ConfigPath, overrides: Overrides = None) -> None:
    """Validate a configuration and reach its backends, spending nothing."""
    configure_logs()
    settings = _load(config, overrides or ())

    async def go() -> None:
        task = await check(settings)
        data = task.data
        console.print(f"{task.name}: {len(data.train)} train, {len(data.val)} val, {len(data.test)} test examples")

    clock.run(go, clock=settings.clock)
    console.print(f"{config}: fine; {_backend(settings)}", highlight=False)


@app.command("report")
def report_command(directory: RunPath) -> None:
    """Print the summary of a finished run."""
    console.print(summarize(read_result(directory)))


class TableFormat(StrEnum):
    jsonl = "jsonl"
    parquet = "parquet"


@app.command("export")
def export_command(
    directory: RunPath,
    table_format: Annotated[TableFormat, typer.Option("--format", help="of the tables")] = TableFormat.jsonl,
    out: Annotated[Path | None, typer.Option(help="where to; by default export/ in the run directory")] = None,
) -> None:
    """Write a run's candidates, scores, lineage, calls and best artifact to files; the run may be going on."""
    done = export(directory, out, table_format.value)
    _plain(f"{done.candidates} candidates and {done.calls} calls written to {done.out}")


@app.command("compact")
def compact_command(directory: RunPath) -> None:
    """Drop the texts of a run's calls for good: they can't be read or replayed any more. All counts stay."""
    done = compact(directory)
    _plain(
        f"dropped the texts of {done.calls} calls: {done.before / 1e6:.1f} MB before, {done.after / 1e6:.1f} MB now; "
        "events, candidates, scores, times and tokens are all there"
    )


@app.command("sim")
def sim_command(
    profile: Annotated[str, typer.Option(help="how fast the server is")] = "qwen3-8b-h100",
    world: Annotated[str, typer.Option(help="what its model knows")] = "rules",
    preset: Annotated[str, typer.Option(help="how hard the world is")] = "normal",
    model: Annotated[str, typer.Option(help="the name it serves the model under")] = "simulated",
    fault_rate: Annotated[float, typer.Option(help="the share of requests that go wrong on purpose")] = 0.0,
    host: Annotated[str, typer.Option()] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=LAST_PORT)] = 8000,
) -> None:
    """Serve a simulated LLM over an OpenAI-compatible API, until Ctrl-C."""
    sections = {"profile": profile, "world": world, "preset": preset, "faults": {"rate": fault_rate}}
    settings = parse_config({"sim": sections, "llm": {"model": model}, "budget": {"seconds": 1}}, "sim")

    async def go() -> None:
        backend = make_sim(settings, make_roles(settings))
        async with serve(backend, host=host, port=port) as url:
            console.print(
                f"simulated {model!r} (profile {profile}, world {world}) at {url}", highlight=False, soft_wrap=True
            )
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    return

    try:
        clock.run(go, clock="real")
    except OSError as error:
        raise InputError(f"sim: can't listen on {host}:{port}: {error.strerror}; choose another --port") from None


app.command("serve")(serve_command)
app.add_typer(sandbox_app, name="sandbox")


app.command("list")(list_command)
app.add_typer(new_app, name="new")


def _serve_metrics(metrics: Metrics, port: int) -> None:
    from prometheus_client import start_http_server  # noqa: PLC0415 - slow to load

    try:
        start_http_server(port, addr="127.0.0.1", registry=metrics.registry)
    except OSError as error:
        raise InputError(f"--metrics-port {port}: can't listen there: {error.strerror}; choose another") from None


@contextmanager
def _fresh_directory(config: Path) -> Iterator[Path]:
    """A new directory under runs/, which no run that begins in the same second gets; it goes if it stays empty."""
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    first = Path("runs") / f"{config.resolve().stem}-{stamp}"
    with writing(first):
        first.parent.mkdir(exist_ok=True)
        for directory in chain([first], (first.with_name(f"{first.name}-{number}") for number in count(2))):
            with suppress(FileExistsError):
                directory.mkdir()
                break
    try:
        yield directory
    finally:
        with suppress(OSError):
            directory.rmdir()


def _title(config: Config) -> str:
    return f"{config.algorithm.name} ({config.algorithm.mode}) on {config.task.name}, {_backend(config)}"


def _backend(config: Config) -> str:
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


def _tell_server(server_changes: ServerChange) -> None:
    _plain(f"{server_changes.url}: {server_changes.detail}")


def _plain(line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True)


def main() -> NoReturn:
    """Entry point: errors a user can meet become one line and an exit code."""
    try:
        app()
    except FlowevolveError as error:
        plain_console(stderr=True).print(f"error: {error}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    sys.exit(0)
