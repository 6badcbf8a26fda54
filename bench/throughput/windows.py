"""How many proposals each method made in the measured window, and whether these are enough."""

from __future__ import annotations

from collections.abc import Iterator

from bench._lib.methods.enough import LEAST, TURNS, needed
from bench._lib.methods.process import CEILING
from bench._lib.methods.runs import WARM_UP
from bench._lib.text import Content, between, table
from bench._lib.time_to_score import Row, Rows, workloads
from bench.throughput.comparisons import PROPOSALS
from bench.throughput.goals import places
from bench.throughput.labels import LABELS
from bench.throughput.rows import methods, values


def counted(row: Row, content: Content) -> list[float]:
    """The proposals in the window of each repeat."""
    return [rate * (1 - WARM_UP) * float(content["settings"]["minutes"]) for rate in values(row, PROPOSALS)]


def short(content: Content, rows: Rows) -> Iterator[tuple[str, str, float, float]]:
    """The workloads and methods with too short a window, how many proposals it has and how many it should have."""
    for (name, method), row in rows.items():
        if method != CEILING and min(counted(row, content)) < needed(row):
            yield name, method, min(counted(row, content)), needed(row)


def windows(content: Content) -> str:
    """A table of the counts, which shows those that are too few."""
    found = places(content)
    columns = [(suffix, name, rows) for suffix, rows in found.items() for name in workloads(rows)]
    lines = [
        (label, *(_cell(content, rows, name, method) for _, name, rows in columns))
        for method, label in LABELS.items()
        if method != CEILING and any(method in methods(rows) for rows in found.values())
    ]
    header = ("proposals in the window, fewest to most of a run", *(f"{suffix}, {name}" for suffix, name, _ in columns))
    return f"{table(header, lines)}\n\n{TEXT}"


def _cell(content: Content, rows: Rows, name: str, method: str) -> str:
    row = rows.get((name, method))
    if row is None:
        return "–"
    each = counted(row, content)
    counts = between(round(min(each)), round(max(each)))
    return counts if min(each) >= needed(row) else f"{counts} (*of {needed(row):.0f}*)"


TEXT = f"""\
Each window should have {LEAST} proposals, and {TURNS} for each flow that is open or for each place of a batch, so that
what was begun before it is no large part of it. Where it has fewer, the number that is needed stands beside it, and the
rates of that cell are not to be relied on."""


def report(content: Content) -> str:
    """The windows that are too short, as a message to whoever runs the bench."""
    told = [
        f"{suffix}, {name}, {method}: {has:.0f} proposals in the shortest window, not {should:.0f}"
        for suffix, rows in places(content).items()
        for name, method, has, should in short(content, rows)
    ]
    return "\n".join(told) or "All windows have as many proposals as they should."
