"""The command line's ``plan``: what a run will take, before a token is paid for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flowevolve._util.errors import InputError
from flowevolve.cli.terminal import console, print_error, print_json, print_plain, show_logs

if TYPE_CHECKING:
    from rich.table import Table

    from flowevolve.runner.forecast.doubts import Estimate
    from flowevolve.runner.forecast.forecast import Forecasts


def plan_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="a TOML file, or a problem's folder, as for run")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="override a setting; may be repeated")
    ] = None,
    widths: Annotated[
        str, typer.Option(metavar="N,N", help="requests in flight to compare; by default llm.concurrency")
    ] = "",
    profiles: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="servers to compare: profiles (flowevolve list profiles) or files")
    ] = "",
    models: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="models to compare by their prices; by default llm.model")
    ] = "",
    lengths: Annotated[
        Path | None, typer.Option(metavar="DIR", help="an earlier run whose answers were as long as this one's will be")
    ] = None,
    probe: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="first measure lengths on N proposals by the real model, which is paid"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="print JSON and nothing else; progress goes to stderr")
    ] = False,
) -> None:
    """Foretell a run's hours, tokens, dollars and proposals, for several widths, servers and models side by side."""
    from flowevolve.cli.runs import load
    from flowevolve.runner.forecast.forecast import plan

    show_logs(verbose=False)
    settings = load(config, overrides or (), print_error)
    found = plan(
        settings,
        widths=_numbers(widths),
        profiles=_names(profiles),
        models=_names(models),
        lengths=lengths,
        probe=probe,
        note=print_error,
    )
    if as_json:
        print_json(found.to_json())
        return
    console.print(_table(found))
    for line in _report(found):
        print_plain(line)


def _names(given: str) -> list[str]:
    return [name for each in given.split(",") if (name := each.strip())]


def _numbers(given: str) -> list[int]:
    names = _names(given)
    wrong = next((name for name in names if not name.isdecimal()), None)
    if wrong is not None:
        raise InputError(f"--widths {given}: {wrong!r} is not a whole number; write widths as --widths 8,16,32")
    return [int(name) for name in names]


def _table(found: Forecasts) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("width", overflow="fold")
    for name in ("hours", "tokens in", "tokens out", "dollars", "proposals"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("limited by")
    for row, varied in zip(found.rows, _varied(found), strict=True):
        amounts = (row.hours, row.input_tokens, row.output_tokens, row.dollars, row.proposals)
        table.add_row("\n".join([str(row.width), *varied]), *map(_amount, amounts), row.limit)
    return table


def _varied(found: Forecasts) -> Iterator[list[str]]:
    """For each row, its profile and its model, each only if it is not the same in all rows."""
    choices = [[Path(row.profile).stem for row in found.rows], [row.model or "-" for row in found.rows]]
    several = [names for names in choices if len(set(names)) > 1]
    return ([names[number] for names in several] for number in range(len(found.rows)))


def _amount(amount: Estimate | None) -> str:
    if amount is None:
        return "-"
    return f"{_short(amount.expected)}\n{_short(amount.low)}–{_short(amount.high)}"


def _short(value: float) -> str:
    """A number with two digits, or three if the first is 1, and with a letter for thousands, millions or billions."""
    if value <= 0:
        return "0"
    digits = 2 if f"{value:.0e}"[0] == "1" else 1
    value = float(f"{value:.{digits}e}")
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= unit:
            return f"{value / (1e3 if name == 'k' else unit):g}{name}"
    return f"{value:g}"


def _report(found: Forecasts) -> Iterator[str]:
    from flowevolve.runner.forecast.limits import ABOUT

    for limit in dict.fromkeys(row.limit for row in found.rows):
        yield f"{limit}: {ABOUT[limit]}"
    ends = dict.fromkeys(row.ends for row in found.rows)
    shares = [row.simulated for row in found.rows]
    part = "" if min(shares) >= 1 else f"; {min(shares):.0%} of it was simulated, and the rest is taken to go on alike"
    yield f"the run is ended by {' or '.join(ends)}{part}"
    if any(row.dollars is None for row in found.rows):
        yield "to see dollars, give the prices of all models in llm.prices or llm.prices_file"
    if not found.measured:
        yield "lengths of answers are those of the profile; --lengths DIR, or --probe N, makes the intervals narrower"
    yield found.because
