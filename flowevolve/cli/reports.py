"""The commands that look at runs: ``report`` at one, ``status`` at some, ``compare`` at several. Only ``report`` writes
files: its page and figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flowevolve._util.errors import InputError
from flowevolve._util.intervals import in_brackets, score_said
from flowevolve._util.words import counted
from flowevolve.cli.terminal import aligned, console, print_error, print_json, print_plain

if TYPE_CHECKING:
    from flowevolve._util.intervals import Interval
    from flowevolve.journal.run_directory import State
    from flowevolve.runner.overview import BestFound, Overview

RUNS = Path("runs")
_UNFINISHED: Mapping[State, str] = {
    "running": "is still running",
    "interrupted": "was stopped or killed",
    "failed": "has failed",
    "not begun": "has not begun",
    "finished": "is just ending",
}
"""What is said of a run without a result, by its state."""

AsJson = Annotated[bool, typer.Option("--json", help="print JSON and nothing else")]


def report_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="a run directory")],
    compared: Annotated[
        list[Path] | None, typer.Option("--compare", metavar="DIR", help="another run in the page; may be repeated")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="the page; by default report.html in the run directory")
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="write figures for papers there, too: SVG, PDF and PNG"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what a run came to, or how far it is, and write its page: one file of HTML that needs no network."""
    from flowevolve.journal.run_directory import RESULT, read_result
    from flowevolve.runner.overview import find_best, read_overview
    from flowevolve.telemetry.summary import summarize

    overview = read_overview(directory)
    directories = [directory, *(compared or ())]
    of_figures = [] if figures is None else _write_figures(directories, figures)
    if (directory / RESULT).is_file():
        result = read_result(directory)
        if as_json:
            print_json({"directory": str(directory), "state": overview.state, **result})
            return
        console.print(summarize(result))
        if overview.hint:
            print_plain(f"to go on: {overview.hint}")
    else:
        best = find_best(overview)
        if as_json:
            print_json(_unfinished_json(overview, best))
            return
        _print_unfinished(overview, best)
    _write_page(directories, out)
    for line in of_figures:
        print_plain(line)


def _write_page(directories: Sequence[Path], out: Path | None) -> None:
    from flowevolve.page.report.report import REPORT, write_report

    print_plain(f"its page: {write_report(directories, out or directories[0] / REPORT)}")


def _write_figures(directories: Sequence[Path], folder: Path) -> list[str]:
    """Write figures of runs, and return lines to print about them."""
    from flowevolve.page.figures.catalog import write_figures

    written = write_figures(directories, folder)
    names = ", ".join(dict.fromkeys(file.stem for file in written.files))
    lines = [f"its figures, as SVG, PDF and PNG: {names} in {folder}"] if names else []
    return lines + [f"the figure {name} was not written, because {why}" for name, why in written.empty.items()]


def status_command(
    directories: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR...", help="run directories; with --all, folders of them")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="all runs in these folders, by default in runs/")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a line on each run: its state, best score, proposals, use of the budget and time, and what went wrong."""
    from flowevolve.runner.overview import read_overview, run_directories

    left_out: list[InputError] = []

    if not directories and not every:
        raise InputError("status: name run directories, or give --all for those in runs/")
    if every:
        folders = directories or [RUNS]
        overviews = list(_readable([path for folder in folders for path in run_directories(folder)], left_out))
    elif len(directories or ()) == 1:
        overviews = [read_overview(path) for path in directories or ()]
    else:
        overviews = list(_readable(directories or (), left_out))
    if as_json:
        print_json([each.to_json() for each in overviews])
    elif overviews:
        _print_rows([_status_row(each) for each in overviews])
        for each in overviews:
            for line in filter(None, [each.failed_by, each.how_many_failed, *each.poor_replies]):
                print_plain(f"{each.path}: {line}")
    elif every:
        print_plain(f"there are no runs in {', '.join(map(str, directories or [RUNS]))}")
    if left_out and not every:  # those were named
        raise typer.Exit(left_out[0].exit_code)


def compare_command(
    directories: Annotated[list[Path], typer.Argument(metavar="DIR...", help="run directories")],
    as_json: AsJson = False,
) -> None:
    """Print a table of several runs: what each is, its scores, and what they took."""
    from flowevolve.runner.overview import read_overview

    overviews = [read_overview(path) for path in directories]
    intervals = [_interval(each) for each in overviews]
    if as_json:
        print_json([each.to_json(interval) for each, interval in zip(overviews, intervals, strict=True)])
        return
    head = ("run", "algorithm", "task", "state", "seed", "best", "95 %", "proposals", "tokens", "dollars", "time")
    rows = [_compared(each, interval) for each, interval in zip(overviews, intervals, strict=True)]
    _print_rows([head, *rows])
    if len({(each.task, each.config.task) for each in overviews}) > 1:
        print_plain(
            "note: these runs have different tasks, or different settings of one, so their scores can't be compared"
        )


def _readable(paths: Sequence[Path], left_out: list[InputError]) -> Iterator[Overview]:
    """The overviews of the runs that can be read. Errors of others are printed, and added to ``left_out``."""
    from flowevolve.runner.overview import read_overview

    for path in paths:
        try:
            yield read_overview(path)
        except InputError as error:
            named = "" if str(path) in str(error) else f"{path}: "
            print_error(f"left out: {named}{error}")
            left_out.append(error)


def _status_row(overview: Overview) -> tuple[str, ...]:
    return (
        str(overview.path),
        _state_in_words(overview.state, overview.lull),
        f"best {score_said(overview.best_score)}",
        f"{overview.proposals} proposals",
        _time(overview.wall_seconds),
        overview.used,
    )


def _compared(overview: Overview, interval: Interval | None) -> tuple[str, ...]:
    config, dollars = overview.config, overview.llm.dollars
    return (
        str(overview.path),
        f"{config.algorithm.name} ({config.algorithm.mode})",
        overview.task,
        overview.state,
        score_said(overview.seed_score),
        score_said(overview.best_score),
        "-" if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}",
        str(overview.proposals),
        f"{overview.tokens:,}",
        "-" if dollars is None else f"{dollars:.4f}",
        _time(overview.wall_seconds),
    )


def _interval(overview: Overview) -> Interval | None:
    from flowevolve.runner.overview import find_best

    if overview.stop_reason is not None:
        return overview.interval
    best = find_best(overview)
    return None if best is None else best.interval


def _unfinished_json(overview: Overview, best: BestFound | None) -> dict[str, object]:
    table = overview.to_json(None if best is None else best.interval)
    if best is not None and isinstance(table["best"], dict):
        table["best"]["components"] = dict(best.components)
    return table


def _print_unfinished(overview: Overview, best: BestFound | None) -> None:
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    hint = f"; to go on: {overview.hint}" if overview.hint else ""
    print_plain(f"unfinished: this run {_state_in_words(_UNFINISHED[overview.state], overview.lull)}{hint}")
    config, llm = overview.config, overview.llm
    head = Table(show_header=False, box=None, pad_edge=False)
    head.add_row("run", f"{config.algorithm.name} ({config.algorithm.mode}) on {overview.task}, {config.llm.backend}")
    interval = None if best is None or best.interval is None else best.interval
    scores = f"seed {score_said(overview.seed_score)}, best {score_said(overview.best_score)}{in_brackets(interval)}"
    head.add_row("score", f"{scores} ({overview.best_id})" if overview.best_id else "nothing is scored yet")
    head.add_row("proposals", f"{overview.proposals}, accepted {overview.accepted}")
    if overview.how_many_failed:
        head.add_row("failed", Text(overview.how_many_failed))
    head.add_row("LLM", f"{counted(llm.requests, 'request')} ({llm.failed} failed), {overview.tokens:,} tokens")
    if llm.dollars:
        head.add_row("cost", f"{llm.dollars:.4f} dollars")
    for line in overview.poor_replies:
        head.add_row("take care", line)
    head.add_row("time", _time(overview.wall_seconds))
    if overview.used:
        head.add_row("budget", overview.used)
    texts = {} if best is None else best.components
    panels = [Panel(Text(text), title=Text(f"best {name}"), title_align="left") for name, text in texts.items()]
    trust = [] if overview.score_trust is None else [Text(f"scores {overview.score_trust}")]
    console.print(Group(head, *panels, *trust))


def _print_rows(rows: Sequence[Sequence[str]]) -> None:
    for line in aligned(rows):
        print_plain(line)


def _state_in_words(state: str, lull: str) -> str:
    return f"{state}, {lull}" if lull else state


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
