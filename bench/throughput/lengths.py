"""How the gain in time depends on how long synchronous gepa runs, and which scores methods have at these moments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import median

from bench._lib.methods.spent import worth_at
from bench._lib.text import Content, between, table
from bench._lib.time_to_score import Rows, TimeToScore, workloads
from bench.throughput.goals import by_workload, places, quotient, range_of_medians, score_name
from bench.throughput.rows import BASE, MERGING_PEER

MINUTES = (1.0, 2.5, 5.0, 10.0, 20.0)
"""The minutes after which synchronous gepa's runs are cut. They are also taken whole."""
SCORED: Mapping[str, str] = {
    BASE: "synchronous gepa",
    "stream": "`stream`",
    MERGING_PEER: "agentdescent with its merging",
}
"""The methods whose scores at these moments are shown, if they were run."""
TEXT = """\
Here synchronous gepa's runs are cut after this many minutes, and the score to reach is the one that a run has then. A
pair counts only if this score is above the seed's, and the number of pairs is given where some don't count. So the gain
depends on how long gepa runs: the times above are those of its whole runs. Scores are medians of runs, from the
workload with the lowest to the one with the highest."""


def cut(rows: Rows, minutes: float) -> Rows:
    """The rows, with synchronous gepa's runs as they were after this many minutes. They must have held-out scores."""
    return {
        (workload, method): row
        if method != BASE
        else {**row, "held_out": [[each for each in run if each[0] <= 60 * minutes] for run in row["held_out"]]}
        for (workload, method), row in rows.items()
    }


def known(rows: Rows) -> bool:
    """Whether the rows have the scores on which this depends."""
    return score_name(rows) == "held-out score" and bool(workloads(rows, "stream", BASE))


def after(found: Iterable[Rows], minutes: float) -> str:
    """What part of synchronous gepa's time the defaults take to the score that it has after this many minutes, as the
    range of the workloads' medians; empty if that is not known.
    """
    return range_of_medians(
        each for rows in found if known(rows) for each in by_workload(cut(rows, minutes), "stream").values()
    )


def by_length(content: Content) -> str:
    """A table of these times on each workload, and of scores at the same moments; empty if they are not known."""
    found = {suffix: rows for suffix, rows in places(content).items() if known(rows)}
    if not content["simulated"] or not found:
        return ""
    first = next(iter(found.values()))
    whole = float(content["settings"]["minutes"])
    lengths = [*(each for each in MINUTES if each < whole), whole]
    scored = [name for name in SCORED if all(workloads(rows, name) for rows in found.values())]
    lines = [
        (suffix, f"{minutes:g}", _times(cut(rows, minutes)), *_scores(rows, scored, minutes))
        for suffix, rows in found.items()
        for minutes in lengths
    ]
    names = ", ".join(f"`{name}`" for name in workloads(first, "stream", BASE))
    header = (
        "server",
        "minutes of synchronous gepa's run",
        f"time of `stream` to gepa's score by then, of gepa's time: {names}",
        *(f"held-out score then: {SCORED[name]}" for name in scored),
    )
    return f"{table(header, lines)}\n\n{TEXT}"


def _times(rows: Rows) -> str:
    of = by_workload(rows, "stream")
    most = max(each.pairs for each in of.values())
    return ", ".join(_time(each, most) for each in of.values())


def _time(timed: TimeToScore, most: int) -> str:
    if timed.median is None:
        return "–"
    return quotient(timed.median) + (f" ({timed.pairs} pairs)" if timed.pairs < most else "")


def _scores(rows: Rows, methods: Iterable[str], minutes: float) -> Iterator[str]:
    for method in methods:
        medians = [
            median(worth_at(run, "seconds", 60 * minutes) for run in rows[name, method]["held_out"])
            for name in workloads(rows, method)
        ]
        yield between(f"{min(medians):.2f}", f"{max(medians):.2f}")
