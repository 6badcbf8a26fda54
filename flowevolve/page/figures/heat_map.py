"""Candidates by examples: who scored what on which."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import nan

from matplotlib.axes import Axes

from flowevolve.page.figures.empty import EmptyFigureError
from flowevolve.page.figures.style import COLUMN, PALE, RED, Drawing, drawing, in_style
from flowevolve.page.figures.validation import validation_scores
from flowevolve.page.tables.candidates import CandidateRow
from flowevolve.page.tables.memory import Tables

ROWS = 60
"""The most candidates that are shown: the best, the worst, and others between them in even steps of rank."""
LEAST = 3
"""With fewer examples there is nothing to compare."""
NAMED = 25
"""With more rows than this, candidates are not named."""


def draw_heat_map(runs: Mapping[str, Tables]) -> Drawing:
    """The validation scores of candidates of the first of the runs, example by example."""
    tables = next(iter(runs.values()))
    scores = validation_scores(tables)
    validated = [each for each in tables.of(CandidateRow) if each.id in scores and each.score is not None]
    names = [each.id for each in _some(sorted(validated, key=lambda each: (-(each.score or 0.0), each.place)))]
    examples = _examples(names, scores)
    if len(examples) < LEAST:
        raise EmptyFigureError("heat_map", f"candidates are scored on fewer than {LEAST} examples")
    with in_style():
        figure = drawing(COLUMN, min(4.2, 1.1 + 0.055 * max(len(names), 12)))
        axes = figure.subplots()
        cells = [[scores[name].get(example, nan) for example in examples] for name in names]
        known = [value for row in cells for value in row if value == value]
        low, high = min(0.0, *known), max(1.0, *known)
        axes.set_facecolor(PALE)
        image = axes.imshow(cells, cmap="cividis", aspect="auto", interpolation="nearest", vmin=low, vmax=high)
        _mark_sole_bests(axes, names, examples, scores)
        axes.set_xlabel(f"{len(examples)} validation examples, hardest on the left")
        axes.set_xticks([])
        of_all = f" of {len(validated)}" if len(names) < len(validated) else ""
        axes.set_ylabel(f"{len(names)}{of_all} candidates, best on top")
        axes.set_yticks(range(len(names)) if len(names) <= NAMED else [], names if len(names) <= NAMED else [])
        bar = figure.colorbar(image, ax=axes, pad=0.02, fraction=0.05, aspect=30, label="score")
        bar.outline.set_linewidth(0)
    return figure


def _some(ranked: Sequence[CandidateRow]) -> Sequence[CandidateRow]:
    if len(ranked) <= ROWS:
        return ranked
    return [ranked[round(place * (len(ranked) - 1) / (ROWS - 1))] for place in range(ROWS)]


def _examples(names: Sequence[str], scores: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The examples, those with the lowest scores first."""
    sums, counts = defaultdict[str, float](float), Counter[str]()
    for name in names:
        for example, value in scores[name].items():
            sums[example] += value
            counts[example] += 1
    return sorted(counts, key=lambda example: (sums[example] / counts[example], example))


def _mark_sole_bests(
    axes: Axes, names: Sequence[str], examples: Sequence[str], scores: Mapping[str, Mapping[str, float]]
) -> None:
    """A dot where one candidate did better on an example than every other that is shown."""
    places, rows = list[int](), list[int]()
    for place, example in enumerate(examples):
        values = sorted(((scores[name][example], row) for row, name in enumerate(names) if example in scores[name]))
        if len(values) > 1 and values[-1][0] > values[-2][0]:
            places.append(place)
            rows.append(values[-1][1])
    if places:
        axes.plot(places, rows, "o", markersize=3, color=RED, mec="white", mew=0.4, label="better than all others")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), handlelength=0.8)
