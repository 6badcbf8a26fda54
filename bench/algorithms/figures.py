"""Figures of the runs: rows, figures with 95 % intervals, and each stream compared with its lockstep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from bench._lib.algorithm_runs import MODES, Mode
from bench._lib.intervals import interval, paired
from bench._lib.stats import Content, spread
from bench.algorithms.groups import BASELINE

Row = Mapping[str, Any]
"""A run as the result file has it, with the fields that `bench._lib.algorithm_runs.ROW` names."""
Rows = Mapping[tuple[str, str, Mode], Sequence[Row]]
"""Rows by problem, algorithm and mode, each list in the order of seeds."""


def summarise(rows: Sequence[Row]) -> Content:
    """All figures of the rows of a result file."""
    grouped = group(rows)
    return {
        "stream_vs_sync": stream_vs_sync(grouped),
        "figures": [_figures(grouped, *key) for key in pairs_of(grouped)],
        "beside_baseline": [
            {"problem": problem, "algorithm": algorithm, "other": BASELINE, **_beside(grouped, problem, algorithm)}
            for problem, algorithm in pairs_of(grouped)
            if algorithm != BASELINE and (problem, BASELINE, "stream") in grouped
        ],
    }


def group(rows: Sequence[Row]) -> Rows:
    groups: dict[tuple[str, str, Mode], list[Row]] = {}
    for row in sorted(rows, key=lambda row: int(row["seed"])):
        groups.setdefault((row["problem"], row["algorithm"], row["mode"]), []).append(row)
    return groups


def pairs_of(rows: Rows) -> list[tuple[str, str]]:
    """Pairs of problem and algorithm, grouped by problem."""
    found = list(dict.fromkeys((problem, algorithm) for problem, algorithm, _ in rows))
    problems = list(dict.fromkeys(problem for problem, _ in found))
    return sorted(found, key=lambda pair: problems.index(pair[0]))


def stream_vs_sync(rows: Rows) -> dict[str, float]:
    """For each algorithm, the median of `ratios` over seeds and problems."""
    found: dict[str, list[float]] = {}
    for problem, algorithm in pairs_of(rows):
        found.setdefault(algorithm, []).extend(ratios(rows, problem, algorithm))
    return {algorithm: median(values) for algorithm, values in found.items() if values}


def ratios(rows: Rows, problem: str, algorithm: str) -> list[float]:
    """For each seed, lockstep's seconds per token divided by the stream's. Runs that end with the same token budget
    have used the same number of tokens, except for the last reply; runs that end with their time have not.
    """
    return [
        sync["seconds"] / sync["tokens"] / (stream["seconds"] / stream["tokens"])
        for sync, stream in _both(rows, problem, algorithm)
    ]


def _both(rows: Rows, problem: str, algorithm: str) -> Iterator[tuple[Row, Row]]:
    """The lockstep row and the stream row of each seed that both modes have."""
    sync, stream = ({row["seed"]: row for row in rows.get((problem, algorithm, mode), ())} for mode in MODES)
    yield from ((sync[seed], stream[seed]) for seed in sync if seed in stream)


def _figures(rows: Rows, problem: str, algorithm: str) -> Content:
    """The figures of an algorithm on a problem, for each mode and for the comparison of the two."""
    found: dict[str, object] = {"problem": problem, "algorithm": algorithm}
    for mode in MODES:
        each = rows.get((problem, algorithm, mode), ())
        if each:
            means = {
                what: fmean(row[what] for row in each) for what in ("tokens", "evaluations", "failures", "seconds")
            }
            found[mode] = {"best": interval([[row["best"] for row in each]]).as_json(), **means}
    both = list(_both(rows, problem, algorithm))
    if both:
        found["ratio"] = spread(ratios(rows, problem, algorithm)).as_json()
        found["stream_less_sync"] = interval([[stream["best"] - sync["best"] for sync, stream in both]]).as_json()
    return found


def _beside(rows: Rows, problem: str, algorithm: str) -> Content:
    ours, theirs = ([row["best"] for row in rows[problem, name, "stream"]] for name in (algorithm, BASELINE))
    return paired(ours, theirs)
