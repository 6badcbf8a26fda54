"""What became of stale items, by how many changes of the pool they had missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil

from flowevolve._util.console import shown
from flowevolve.page.figures.empty import EmptyFigureError
from flowevolve.page.figures.style import (
    BLUE,
    COLUMN,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    YELLOW,
    Drawing,
    drawing,
    in_style,
    whole_numbers,
)
from flowevolve.page.tables.candidates import JudgementRow
from flowevolve.page.tables.memory import Tables

BARS = 15
"""The most bars. Each is for one gap or for several."""
_COLOURS = {
    "went on": BLUE,
    "repaired": GREEN,
    "discarded": RED,
    "repair: subsumed": ORANGE,
    "repair: conflicting": PURPLE,
    "repair: unreadable": GREY,
    "sent to repair": SKY,
}
_SAID = {"continue": "went on", "discard": "discarded", "repair": "sent to repair"}
"""What became of items, by what the policy said."""


def draw_staleness(runs: Mapping[str, Tables]) -> Drawing:
    """How many stale items of the first of the runs went on, were repaired or were discarded."""
    judged = list(next(iter(runs.values())).of(JudgementRow))
    if not judged:
        raise EmptyFigureError("staleness", "no item was judged: none was stale, or every one went on unasked")
    width = ceil(max(row.gap for row in judged) / BARS) or 1
    counts = Counter(((row.gap - 1) // width, _became(row)) for row in judged)
    bars = range(max(bar for bar, _ in counts) + 1)
    order = {outcome: place for place, outcome in enumerate(_COLOURS)}
    outcomes = sorted({outcome for _, outcome in counts}, key=lambda each: (order.get(each, len(order)), each))
    with in_style():
        figure = drawing(COLUMN, 2.1)
        axes = figure.subplots()
        below = [0] * len(bars)
        for outcome in outcomes:
            heights = [counts[bar, outcome] for bar in bars]
            label = f"{shown(outcome)} ({sum(heights):,})"
            axes.bar(bars, heights, 0.8, bottom=below, color=_COLOURS.get(outcome, YELLOW), linewidth=0, label=label)
            below = [low + height for low, height in zip(below, heights, strict=True)]
        axes.set_xticks(bars, [_gaps(bar, width) for bar in bars], rotation=45 if width > 9 else 0)
        axes.set_xlim(-0.6, max(len(bars), 6) - 0.4)
        axes.set_xlabel("changes of the pool that an item had missed")
        axes.set_ylabel("items")
        whole_numbers(axes)
        axes.grid(axis="y", linewidth=0.4, alpha=0.4)
        axes.legend(loc="upper right")
    return figure


def _became(row: JudgementRow) -> str:
    if row.error is not None:
        return "repair: unreadable"
    if row.verdict is None:
        return _SAID.get(row.policy, row.policy)
    return "repaired" if row.verdict == "orthogonal" else f"repair: {row.verdict}"


def _gaps(bar: int, width: int) -> str:
    return str(bar + 1) if width == 1 else f"{bar * width + 1}–{(bar + 1) * width}"
