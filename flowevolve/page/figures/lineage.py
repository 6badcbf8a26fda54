"""Which candidate was made from which, over time and score."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from flowevolve.page.figures.empty import EmptyFigureError
from flowevolve.page.figures.style import (
    BLUE,
    DARK,
    GREEN,
    GREY,
    ORANGE,
    PAGE,
    PURPLE,
    RED,
    SKY,
    YELLOW,
    Drawing,
    drawing,
    in_style,
    mark,
    stroke,
    time_unit,
)
from flowevolve.page.figures.validation import validation_scores
from flowevolve.page.tables.candidates import CandidateRow
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.run import RunRow

ACCEPTED = ("confirmed", "speculative")
_LOOKS = {
    "seed": ("s", DARK),
    "new": ("o", YELLOW),
    "edit": ("o", BLUE),
    "merge": ("D", PURPLE),
    "group": ("P", ORANGE),
    "prune": ("v", GREEN),
    "repair": ("^", SKY),
    "copy": ("s", GREY),
    "injected": ("X", RED),
    "adopted": ("X", RED),
}
"""The mark and the colour of each kind of candidate."""


@dataclass(frozen=True, slots=True)
class _Node:
    row: CandidateRow
    x: float
    y: float


def draw_lineage(runs: Mapping[str, Tables]) -> Drawing:
    """All candidates of the first of the runs by time and score, with lines from parents, and the path to the best."""
    tables = next(iter(runs.values()))
    rows = {row.id: row for row in tables.of(CandidateRow)}
    nodes, unit = _nodes(rows, validation_scores(tables))
    if not nodes:
        raise EmptyFigureError("lineage", "no candidate was scored")
    (run,) = tables.of(RunRow)
    way = set() if run.best is None else _ancestors(rows, run.best)
    unscored = [row for row in rows.values() if row.id not in nodes and (row.score is None or row.failure is not None)]
    with in_style():
        figure = drawing(PAGE, 2.9)
        axes, strip = (
            figure.subplots(2, 1, sharex=True, height_ratios=[1, 0.07]) if unscored else (figure.subplots(), None)
        )
        _edges(axes, nodes, way)
        _marks(axes, list(nodes.values()), way)
        axes.set_ylabel("validation score")
        axes.grid(axis="y", linewidth=0.4, alpha=0.4)
        axes.legend(handles=_legend(list(nodes.values())), loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=8)
        lowest = axes
        if strip is not None:
            lowest = strip
            strip.eventplot([row.created / unit[1] for row in unscored], colors=GREY, linewidths=0.5)
            strip.set_yticks([1], [f"{len(unscored):,} failed\nor not scored"])
            strip.tick_params(left=False)
            strip.spines[["left"]].set_visible(False)
        lowest.set_xlabel(f"time of the proposal ({unit[0]})")
        end = max(row.created for row in rows.values()) / unit[1]
        lowest.set_xlim(-0.01 * end, 1.02 * end)
    return figure


def _nodes(rows: Mapping[str, CandidateRow], known: Container[str]) -> tuple[dict[str, _Node], tuple[str, float]]:
    """The candidates whose scores can be compared, with where they are drawn, and the unit of time there."""
    unit = time_unit(max((row.created for row in rows.values()), default=0.0))
    return {
        row.id: _Node(row, row.created / unit[1], row.score)
        for row in rows.values()
        if row.id in known and row.score is not None and row.failure is None
    }, unit


def _parents(row: CandidateRow) -> Sequence[str]:
    return (*row.parents, *row.edits) or row.sources[:1]


def _ancestors(rows: Mapping[str, CandidateRow], best: str) -> set[str]:
    """The best candidate and all that it was made from."""
    found, left = set[str](), [best]
    while left:
        name = left.pop()
        if name in rows and name not in found:
            found.add(name)
            left += _parents(rows[name])
    return found


def _edges(axes: Axes, nodes: Mapping[str, _Node], way: set[str]) -> None:
    """Draw lines from parents; those on the path to the best one go over the others."""
    for on_way in (False, True):
        lines = [
            [(nodes[parent].x, nodes[parent].y), (node.x, node.y)]
            for name, node in nodes.items()
            for parent in _parents(node.row)
            if parent in nodes and (name in way and parent in way) == on_way
        ]
        colour, width = (DARK, 0.9) if on_way else (GREY, 0.35)
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, alpha=1 if on_way else 0.5))


def _marks(axes: Axes, nodes: Sequence[_Node], way: set[str]) -> None:
    """Draw the marks of candidates: small and hollow for those rejected or not judged, large on the path to the best
    one.
    """
    for node in sorted(nodes, key=lambda each: (each.row.id in way, each.row.status in ACCEPTED, each.row.place)):
        marker, colour = _LOOKS.get(node.row.kind, ("o", GREY))
        inside = colour if node.row.status in ACCEPTED else "white"
        on_way = node.row.id in way
        axes.plot(
            node.x,
            node.y,
            marker,
            color=colour,
            mfc=inside,
            mec=DARK if on_way else colour,
            mew=0.6,
            ms=5 if on_way else 3,
            zorder=3,
        )


def _legend(nodes: Sequence[_Node]) -> list[Line2D]:
    kinds = {node.row.kind for node in nodes}
    entries: list[Line2D] = [mark(*_LOOKS[kind], kind) for kind in _LOOKS if kind in kinds]
    if any(node.row.status not in ACCEPTED for node in nodes):
        entries.append(mark("o", GREY, "rejected or not judged", filled=False))
    return [*entries, stroke(DARK, "the best one's way")]
