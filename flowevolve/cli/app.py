"""Evolve prompts and programs with LLMs, as a stream. Begin with `flowevolve init`, which writes what a run needs."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, Protocol, runtime_checkable

import typer

from flowevolve._util import clock
from flowevolve._util.errors import FlowevolveError, is_bug
from flowevolve._util.outputs import LastingOutput, drop_output
from flowevolve._util.words import counted
from flowevolve.cli.branch import branch_command
from flowevolve.cli.calibrate import calibrate_command
from flowevolve.cli.gateway import gateway_command
from flowevolve.cli.init import init_command
from flowevolve.cli.list import list_command
from flowevolve.cli.new import new_app
from flowevolve.cli.options import LAST_PORT
from flowevolve.cli.plan import plan_command
from flowevolve.cli.prompts import prompts_app
from flowevolve.cli.reports import compare_command, report_command, status_command
from flowevolve.cli.sandbox import sandbox_app
from flowevolve.cli.serve import serve_command
from flowevolve.cli.sim import sim_command
from flowevolve.cli.terminal import console, print_error, print_plain, show_logs
from flowevolve.cli.watch import watch_command
from flowevolve.core.stop_reasons import INTERRUPTED

if TYPE_CHECKING:
    from flowevolve.runner.clients import SideTask
    from flowevolve.runner.replay import Replayed
    from flowevolve.runner.result import Result
    from flowevolve.runner.run import Watchers

EXIT_CODES = (
    "Exit codes: 0 done; 1 the run could not be recorded (a full disk), or a bug; 2 the configuration, the data or an "
    "argument is wrong; 3 the LLM's server can't be reached or refuses; 4 the task's own code failed; 5 nothing came "
    "of the work; 130 interrupted."
)

_IN_WORDS = (
    (". Did you", "; did you"),
    ("Value error, ", ""),
    ("Input should be ", "it has to be "),
    ("a valid integer, unable to parse string as an integer", "a whole number"),
    ("a valid number, unable to parse string as a number", "a number"),
)
"""What Typer and Pydantic write in messages about a command line, and what it says there instead."""

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__, epilog=EXIT_CODES)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_plain(f"flowevolve {version('flowevolve')}")
        raise typer.Exit


@app.callback()
def _app(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    """The options that come before a command."""


ConfigPath = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="a TOML file, such as `flowevolve init` writes; or a problem's folder of OpenEvolve, ShinkaEvolve or LEVI",
    ),
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="override a setting; may be repeated")
]
MetricsPort = Annotated[
    int | None,
    typer.Option(min=0, max=LAST_PORT, metavar="PORT", help="serve Prometheus metrics on this loopback port"),
]
Watch = Annotated[
    bool, typer.Option("--watch", help="serve the run's live page while it goes on; the same as watch = true")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="log what happens on standard error")]
AsJson = Annotated[
    bool, typer.Option("--json", help="print one JSON object at the end and nothing else; progress goes to stderr")
]

RunPath = Annotated[Path, typer.Argument(metavar="DIR", help="a run directory")]


def run_command(
    config: ConfigPath,
    overrides: Overrides = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="DIR[@VERSION]", help="start from the pool of another run")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="the run directory; by default a new one under runs/")
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="also write events.jsonl")] = False,
    metrics_port: MetricsPort = None,
    watch: Watch = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a configuration; Ctrl-C once finishes what is open and stops, twice cuts it off, thrice ends the process."""
    from flowevolve.cli.runs import failure_as_json, fresh_directory, load, make_output, show, title
    from flowevolve.runner.run import run

    show_logs(verbose=verbose)
    output = make_output(as_json=as_json)
    with failure_as_json(output, out):
        settings = load(config, [*(overrides or ()), *_start(start), *_watched(watch)], output.say)
    with fresh_directory(config) if out is None else nullcontext(out) as directory, failure_as_json(output, directory):
        output.say(title(settings))

        async def go(watchers: Watchers, side_task: SideTask) -> Result:
            return await run(settings, out=directory, events=events, watchers=watchers, side_task=side_task)

        show(go, settings, directory, metrics_port, output)


def _watched(wanted: bool) -> list[str]:
    """``--watch`` as overrides."""
    return ["watch=true"] if wanted else []


def _start(named: str | None) -> list[str]:
    """``DIR[@VERSION]`` as overrides."""
    if named is None:
        return []
    directory, at, version = named.rpartition("@")
    if not at or not version.isdigit():
        directory, version = named, ""
    return [f"start.run={json.dumps(directory)}", *([f"start.version={version}"] if version else [])]


def resume_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="the run directory of a killed or stopped run")],
    overrides: Overrides = None,
    metrics_port: MetricsPort = None,
    watch: Watch = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Go on with a run where it was stopped or killed; --set may give it a larger budget or other workers."""
    from flowevolve.cli.runs import added_times, failure_as_json, make_output, show, title
    from flowevolve.config.run import parse_recorded, with_overrides
    from flowevolve.journal.reading import RecordedRun
    from flowevolve.runner.overview import with_raised_limits
    from flowevolve.runner.resume import resume

    show_logs(verbose=verbose)
    output = make_output(as_json=as_json)
    changes = [*(overrides or ()), *_watched(watch)]
    with failure_as_json(output, directory):
        with RecordedRun(directory) as recorded:
            settings = parse_recorded(recorded.edited_config, f"{directory}/config.toml")
            start = recorded.start
            task = None if start is None else start.task
            changed = with_overrides(settings, changes)
            shown = with_raised_limits(changed, recorded)
        if start is None or not start.given:  # else it can only be resumed from Python
            output.say(f"going on with {directory}: {title(settings, task)}")

        async def go(watchers: Watchers, side_task: SideTask) -> Result:
            def note(text: str) -> None:
                output.say(f"note: {text}")

            return await resume(directory, changes=changes, note=note, watchers=watchers, side_task=side_task)

        for text in added_times(changed, changes):
            output.say(f"note: {text}")
        show(go, shown, directory, metrics_port, output)


def replay_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="the run directory of a run, ended or going on")],
    overrides: Overrides = None,
    slots: Annotated[
        int | None, typer.Option(metavar="N", help="how many requests the server works on at once")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="leave a run directory here; by default none")] = None,
    verbose: Verbose = False,
) -> None:
    """Run a recorded run's replies and latencies again on the virtual clock: what if there were other workers?"""
    from flowevolve.runner.interrupts import until_interrupted
    from flowevolve.runner.replay import replay
    from flowevolve.runner.run import Watchers
    from flowevolve.telemetry.comparison import compare
    from flowevolve.telemetry.logs import log_event

    show_logs(verbose=verbose)

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
        print_plain(f"written to {out}")
    raise typer.Exit(replayed.result.report.stop_reason.exit_code)


def check_command(config: ConfigPath, overrides: Overrides = None, verbose: Verbose = False) -> None:
    """Validate a configuration and reach its backends, spending nothing."""
    from flowevolve.cli.runs import describe_backend, load
    from flowevolve.programs import ProgramTask
    from flowevolve.runner.check import check

    show_logs(verbose=verbose)
    settings = load(config, overrides or ())

    async def go() -> None:
        task = await check(settings, note=lambda message: print_plain(f"note: {message}"))
        data = task.data
        if isinstance(task, ProgramTask):
            print_plain(f"{task.name}: {counted(len(data.val), 'case')}")
            return
        print_plain(f"{task.name}: {len(data.train)} train, {len(data.val)} val, {len(data.test)} test examples")

    clock.run(go, clock=settings.clock)
    print_plain(f"{config}: fine; {describe_backend(settings)}")


class ExportFormat(StrEnum):
    jsonl = "jsonl"
    parquet = "parquet"
    trace = "trace"


def export_command(
    directory: RunPath,
    file_format: Annotated[
        ExportFormat,
        typer.Option("--format", metavar="FORMAT", help="jsonl or parquet for tables, or trace: one file for Perfetto"),
    ] = ExportFormat.jsonl,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="where to; by default export/ in the run directory")
    ] = None,
) -> None:
    """Write a run's candidates, scores, lineage, calls and best artifact to files; the run may be going on."""
    from flowevolve.journal.export import export
    from flowevolve.page.trace import write_trace

    if file_format is ExportFormat.trace:
        print_plain(f"written to {write_trace(directory, out)}; open it at https://ui.perfetto.dev to look at it")
        return
    done = export(directory, out, "parquet" if file_format is ExportFormat.parquet else "jsonl")
    print_plain(f"{counted(done.candidates, 'candidate')} and {counted(done.calls, 'call')} written to {done.out}")
    if done.best:
        print_plain(f"the best candidate: {', '.join(map(str, done.best))}")
    if done.trust is not None:
        print_plain(f"scores {done.trust}")


def compact_command(directory: RunPath) -> None:
    """Drop the texts of a run's calls for good: they can't be read or replayed any more. All counts stay."""
    from flowevolve.journal.compact import compact

    done = compact(directory)
    print_plain(
        f"dropped the texts of {counted(done.calls, 'call')}: {done.before / 1e6:.1f} MB before, "
        f"{done.after / 1e6:.1f} MB now; "
        "events, candidates, scores, times and tokens are kept"
    )


def repair_command(
    directory: RunPath,
    only_check: Annotated[bool, typer.Option("--check", help="only say what is wrong; nothing is changed")] = False,
) -> None:
    """If a run's journal is damaged, save what was recorded before the damage. The damaged files are kept."""
    from flowevolve.journal.reading import RecordedRun
    from flowevolve.journal.repair import repair

    if only_check:
        with RecordedRun(directory) as recorded:
            recorded.check(fields=True)
    done = None if only_check else repair(directory)
    if done is None:
        print_plain(f"{directory}: nothing is wrong with the journal")
        return
    print_plain(f"the journal was damaged: {done.damage}")
    print_plain(
        f"saved: {counted(done.events, 'event')} and {counted(done.calls, 'call')}, the first {done.seconds:.0f} s of "
        "the run"
    )
    if done.gone_events or done.gone_calls:
        print_plain(
            f"gone: what came after that, {counted(done.gone_events, 'event')} and {counted(done.gone_calls, 'call')}"
        )
    if done.without_messages:
        print_plain(
            f"gone: the messages of {counted(done.without_messages, 'call')}, whose replies and counts are kept"
        )
    if done.payloads:
        print_plain(
            f"gone: the content of {counted(done.payloads, 'item')} that a stage was to take; a resume discards it"
        )
    print_plain(f"the damaged files are in {done.kept}; to go on: flowevolve resume {directory}")


app.command("init")(init_command)
app.command("check")(check_command)
app.command("plan")(plan_command)
app.command("run")(run_command)
app.command("resume")(resume_command)
app.command("branch")(branch_command)
app.command("status")(status_command)
app.command("report")(report_command)
app.command("watch")(watch_command)
app.command("compare")(compare_command)
app.command("export")(export_command)
app.command("compact")(compact_command)
app.command("repair")(repair_command)
app.command("replay")(replay_command)
app.command("list")(list_command)
app.add_typer(prompts_app, name="prompts")
app.add_typer(new_app, name="new")
app.command("sim")(sim_command)
app.command("serve")(serve_command)
app.command("calibrate")(calibrate_command)
app.command("gateway")(gateway_command)
app.add_typer(sandbox_app, name="sandbox")


@runtime_checkable
class _Misuse(Protocol):
    """What the parser raises if the command line is wrong."""

    exit_code: int

    def format_message(self) -> str: ...


def main() -> NoReturn:
    """Entry point: errors that a user can cause become one line and an exit code. A bug of ours keeps its traceback."""
    code = _exit_code()
    LastingOutput(sys.stdout).flush()
    sys.exit(code)


def _exit_code() -> int:
    try:
        return app(prog_name="flowevolve", standalone_mode=False) or 0
    except FlowevolveError as error:
        if is_bug(error):
            raise
        print_error(f"error: {error}")
        return error.exit_code
    except typer.Abort:
        print_error("interrupted")
        return INTERRUPTED.exit_code
    except BrokenPipeError:
        drop_output(sys.stdout)
        return 0
    except SystemExit as ended:  # so rich ends if the reader of a help text has gone
        if isinstance(ended.__context__, BrokenPipeError):
            return 0
        raise
    except Exception as error:
        if not isinstance(error, _Misuse):
            raise
        _explain(error)
        return error.exit_code


def _explain(error: _Misuse) -> None:
    """Say in one line what is wrong with the command line, and where to look."""
    message = error.format_message().strip().rstrip(".")
    for written, meant in _IN_WORDS:
        message = message.replace(written, meant)
    if not message or "\n" in message:  # a command without its arguments, whose help is shown
        if message:
            print_error(message)
        return
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "flowevolve")
    mark = "" if message.endswith("?") else ";"
    print_error(f"error: {message[:1].lower()}{message[1:]}{mark} see: {command} --help")
