"""Evolve prompts and programs with LLMs, as a stream.

Exit codes: 0 done, 2 bad config or input, 3 backend unreachable, 4 task broken, 130 interrupted.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from flowevolve._util import clock
from flowevolve._util.errors import FlowevolveError, InputError
from flowevolve._util.signals import ending_signals
from flowevolve.cli.list import list_command
from flowevolve.cli.new import new_app
from flowevolve.cli.prompts import prompts_app
from flowevolve.cli.sandbox import sandbox_app
from flowevolve.cli.serve import serve_command
from flowevolve.cli.terminal import console, plain_console, print_plain

if TYPE_CHECKING:
    from flowevolve.runner.clients import SideTask
    from flowevolve.runner.replay import Replayed
    from flowevolve.runner.result import Result
    from flowevolve.runner.run import Watchers

LAST_PORT = 65535

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)

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
    from flowevolve.cli.runs import fresh_directory, load, show, title
    from flowevolve.runner.run import run
    from flowevolve.telemetry.logs import configure_logs

    configure_logs(logging.INFO if verbose else logging.WARNING)
    settings = load(config, [*(overrides or ()), *_start(start)])
    with fresh_directory(config) if out is None else nullcontext(out) as directory:
        console.print(title(settings), highlight=False)

        async def go(watchers: Watchers, side_task: SideTask) -> Result:
            return await run(settings, out=directory, events=events, watchers=watchers, side_task=side_task)

        show(go, settings, directory, metrics_port)


def _start(named: str | None) -> list[str]:
    """``DIR[@VERSION]`` as overrides."""
    if named is None:
        return []
    directory, at, version = named.rpartition("@")
    if not at or not version.isdigit():
        directory, version = named, ""
    return [f"start.run={json.dumps(directory)}", *([f"start.version={version}"] if version else [])]


@app.command("resume")
def resume_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="the run directory of a killed or stopped run")],
    overrides: Overrides = None,
    metrics_port: MetricsPort = None,
    verbose: Verbose = False,
) -> None:
    """Go on with a run where it was stopped or killed; --set may give it a larger budget or other workers."""
    from flowevolve.cli.runs import show, title
    from flowevolve.config.run import parse_recorded, with_overrides
    from flowevolve.journal.reading import RecordedRun
    from flowevolve.runner.resume import resume
    from flowevolve.telemetry.logs import configure_logs

    configure_logs(logging.INFO if verbose else logging.WARNING)
    with RecordedRun(directory) as recorded:
        settings = parse_recorded(recorded.config, f"{directory}/config.toml")
    console.print(f"going on with {directory}: {title(settings)}", highlight=False, soft_wrap=True)

    async def go(watchers: Watchers, side_task: SideTask) -> Result:
        return await resume(directory, changes=overrides or (), watchers=watchers, side_task=side_task)

    show(go, with_overrides(settings, overrides or ()), directory, metrics_port)


@app.command("replay")
def replay_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="the run directory of a run, ended or going on")],
    overrides: Overrides = None,
    slots: Annotated[int | None, typer.Option(help="how many requests the server works on at once")] = None,
    out: Annotated[Path | None, typer.Option(help="leave a run directory here; by default none")] = None,
    verbose: Verbose = False,
) -> None:
    """Run a recorded run's replies and latencies again on the virtual clock: what if there were other workers?"""
    from flowevolve.core.stop_reasons import INTERRUPTED
    from flowevolve.runner.interrupts import until_interrupted
    from flowevolve.runner.replay import replay
    from flowevolve.runner.run import Watchers
    from flowevolve.telemetry.comparison import compare
    from flowevolve.telemetry.logs import configure_logs, log_event

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
    from flowevolve.cli.runs import describe_backend, load
    from flowevolve.runner.run import check
    from flowevolve.telemetry.logs import configure_logs

    configure_logs()
    settings = load(config, overrides or ())

    async def go() -> None:
        task = await check(settings)
        data = task.data
        console.print(f"{task.name}: {len(data.train)} train, {len(data.val)} val, {len(data.test)} test examples")

    clock.run(go, clock=settings.clock)
    console.print(f"{config}: fine; {describe_backend(settings)}", highlight=False)


@app.command("report")
def report_command(directory: RunPath) -> None:
    """Print the summary of a finished run."""
    from flowevolve.journal.run_directory import read_result
    from flowevolve.telemetry.summary import summarize

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
    from flowevolve.journal.export import export

    done = export(directory, out, table_format.value)
    print_plain(f"{done.candidates} candidates and {done.calls} calls written to {done.out}")


@app.command("compact")
def compact_command(directory: RunPath) -> None:
    """Drop the texts of a run's calls for good: they can't be read or replayed any more. All counts stay."""
    from flowevolve.journal.compact import compact

    done = compact(directory)
    print_plain(
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
    from flowevolve.config.run import parse_config
    from flowevolve.runner.assemble import make_roles, make_sim
    from flowevolve.sim.server import serve

    sections = {"profile": profile, "world": world, "preset": preset, "faults": {"rate": fault_rate}}
    settings = parse_config({"sim": sections, "llm": {"model": model}, "budget": {"seconds": 1}}, "sim")

    async def go() -> None:
        backend = make_sim(settings, make_roles(settings))
        async with serve(backend, host=host, port=port) as url:
            console.print(
                f"simulated {model!r} (profile {profile}, world {world}) at {url}", highlight=False, soft_wrap=True
            )
            with ending_signals() as signals:
                async for _ in signals:
                    return

    try:
        clock.run(go, clock="real")
    except OSError as error:
        raise InputError(f"sim: can't listen on {host}:{port}: {error.strerror}; choose another --port") from None


app.command("serve")(serve_command)
app.add_typer(sandbox_app, name="sandbox")
app.add_typer(prompts_app, name="prompts")
app.command("list")(list_command)
app.add_typer(new_app, name="new")


def main() -> NoReturn:
    """Entry point: errors a user can meet become one line and an exit code."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # so that a task beside the configuration is found, as with python -m flowevolve
    try:
        app()
    except FlowevolveError as error:
        plain_console(stderr=True).print(f"error: {error}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    sys.exit(0)
