"""The best score over time and over tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from math import nan

from matplotlib.axes import Axes

from flowevolve._util.console import shown
from flowevolve.page.figures.empty import EmptyFigureError
from flowevolve.page.figures.style import COLUMN, LINES, Drawing, drawing, in_style, time_unit, token_unit
from flowevolve.page.tables.candidates import CurveRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow

_POINTS = {"held_out": ("s", "held-out test"), "fresh": ("D", "fresh examples")}
"""The mark of each series that has single points, and what it is called."""


@dataclass(frozen=True, slots=True)
class _Across:
    """What is on the x axis."""

    name: str
    of: Callable[[CurveRow], float]
    unit: Callable[[float], tuple[str, float]]
    label: str


def draw_score(runs: Mapping[str, Tables]) -> Drawing:
    """The best score over time, with 95 % intervals."""
    return _draw(runs, _Across("score", lambda row: row.seconds, time_unit, "time ({})"))


def draw_score_over_tokens(runs: Mapping[str, Tables]) -> Drawing:
    """The best score over the tokens of all requests, with 95 % intervals."""
    return _draw(runs, _Across("score_tokens", lambda row: row.tokens, token_unit, "prompt and completion ({})"))


def _draw(runs: Mapping[str, Tables], across: _Across) -> Drawing:
    curves = {name: sorted(tables.of(CurveRow), key=lambda row: row.seconds) for name, tables in runs.items()}
    end = max((across.of(row) for rows in curves.values() for row in rows), default=0)
    if not end:
        raise EmptyFigureError(across.name, "nothing was scored")
    unit, size = across.unit(end)
    with in_style():
        figure = drawing(COLUMN, 2.1)
        axes = figure.subplots()
        for (name, rows), (colour, dashes) in zip(curves.items(), cycle(LINES), strict=False):
            known = any(row.low != row.high for row in rows if row.series == "validation")
            alone = "validation, 95 % interval" if known else "validation"
            label = alone if len(runs) == 1 else shown(name)
            _line(axes, rows, lambda row: across.of(row) / size, (colour, dashes), label)
            for series, (marker, said) in _POINTS.items():
                points = [row for row in rows if row.series == series]
                own = said if len(runs) == 1 else f"{shown(name)}, {said}"
                _points(axes, points, lambda row: across.of(row) / size, (colour, marker), own)
        axes.set_xlabel(across.label.format(unit))
        axes.set_ylabel(_scale(runs))
        axes.set_xlim(0, end / size * 1.02)
        axes.grid(axis="y", linewidth=0.4, alpha=0.4)
        axes.legend(loc="lower right")
    return figure


def _line(
    axes: Axes, rows: list[CurveRow], across: Callable[[CurveRow], float], look: tuple[str, str], label: str
) -> None:
    """Draw the steps of the best validation score, in a band that is its interval."""
    steps = [row for row in rows if row.series == "validation"]
    places, (colour, dashes) = [across(row) for row in steps], look
    lows = [nan if row.low is None else row.low for row in steps]
    highs = [nan if row.high is None else row.high for row in steps]
    axes.fill_between(places, lows, highs, step="post", color=colour, alpha=0.15, linewidth=0)
    axes.plot(places, [row.score for row in steps], drawstyle="steps-post", color=colour, ls=dashes, label=label)


def _points(
    axes: Axes, rows: list[CurveRow], across: Callable[[CurveRow], float], look: tuple[str, str], label: str
) -> None:
    """Draw single estimates, with bars that are their intervals."""
    if not rows:
        return
    colour, marker = look
    below = [0.0 if row.low is None else row.score - row.low for row in rows]
    above = [0.0 if row.high is None else row.high - row.score for row in rows]
    axes.errorbar(
        [across(row) for row in rows],
        [row.score for row in rows],
        yerr=[below, above],
        fmt=marker,
        color=colour,
        markerfacecolor="white",
        markersize=4,
        elinewidth=0.8,
        capsize=2,
        label=label,
        clip_on=False,
        zorder=3,
    )


def _scale(runs: Mapping[str, Tables]) -> str:
    """The label of the scores, with the number of examples that they are means over."""
    counts = {run.examples for tables in runs.values() for run in tables.of(RunRow)}
    (count,) = counts if len(counts) == 1 else (None,)
    return "best score" if count is None or count < 2 else f"best score ({count} examples)"
