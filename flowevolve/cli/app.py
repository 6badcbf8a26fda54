"""Evolve prompts and programs with LLMs, as a stream.

Exit codes: 0 done, 2 bad config or input, 3 backend unreachable, 4 task broken, 130 interrupted.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from flowevolve._util.errors import FlowevolveError
from flowevolve.cli.list import list_command
from flowevolve.cli.new import new_app
from flowevolve.cli.sandbox import sandbox_app
from flowevolve.cli.serve import serve_command
from flowevolve.cli.terminal import plain_console

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
    from flowevolve.cli.running import run_config  # noqa: PLC0415 - loads the engine

    run_config(config, overrides or (), start, out, events, metrics_port, verbose)


@app.command("resume")
def resume_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="the run directory of a killed or stopped run")],
    overrides: Overrides = None,
    metrics_port: MetricsPort = None,
    verbose: Verbose = False,
) -> None:
    """Go on with a run where it was stopped or killed; --set may give it a larger budget or other workers."""
    from flowevolve.cli.running import resume_run  # noqa: PLC0415 - loads the engine

    resume_run(directory, overrides or (), metrics_port, verbose)


@app.command("replay")
def replay_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="the run directory of a run, ended or going on")],
    overrides: Overrides = None,
    slots: Annotated[int | None, typer.Option(help="how many requests the server works on at once")] = None,
    out: Annotated[Path | None, typer.Option(help="leave a run directory here; by default none")] = None,
    verbose: Verbose = False,
) -> None:
    """Run a recorded run's replies and latencies again on the virtual clock: what if there were other workers?"""
    from flowevolve.cli.running import replay_run  # noqa: PLC0415 - loads the engine

    replay_run(directory, overrides or (), slots, out, verbose)


@app.command("check")
def check_command(config: ConfigPath, overrides: Overrides = None) -> None:
    """Validate a configuration and reach its backends, spending nothing."""
    from flowevolve.cli.running import check_config  # noqa: PLC0415 - loads the engine

    check_config(config, overrides or ())


@app.command("report")
def report_command(directory: RunPath) -> None:
    """Print the summary of a finished run."""
    from flowevolve.journal.run_directory import read_result  # noqa: PLC0415 - loads the engine
    from flowevolve.telemetry.summary import summarize  # noqa: PLC0415

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
    from flowevolve.journal.export import export  # noqa: PLC0415 - loads the engine

    done = export(directory, out, table_format.value)
    console.print(f"{done.candidates} candidates and {done.calls} calls written to {done.out}")


@app.command("compact")
def compact_command(directory: RunPath) -> None:
    """Drop the texts of a run's calls for good: they can't be read or replayed any more. All counts stay."""
    from flowevolve.journal.compact import compact  # noqa: PLC0415 - loads the engine

    done = compact(directory)
    console.print(
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
    from flowevolve.cli.running import serve_simulation  # noqa: PLC0415 - loads the engine

    serve_simulation(profile, world, preset, model, fault_rate, host, port)


app.command("serve")(serve_command)
app.add_typer(sandbox_app, name="sandbox")


app.command("list")(list_command)
app.add_typer(new_app, name="new")


def main() -> NoReturn:
    """Entry point: errors a user can meet become one line and an exit code."""
    try:
        app()
    except FlowevolveError as error:
        plain_console(stderr=True).print(f"error: {error}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    sys.exit(0)
