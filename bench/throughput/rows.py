"""What the rows of a result file come to: a figure beside another method's, and times to a score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median
from typing import Any, Literal

from bench._lib.methods.ratios import Ratio, difference, ratio
from bench._lib.methods.spent import worth_at

Row = Mapping[str, Any]
"""A row of the result file, as `bench._lib.methods.ratios.row` makes it."""
Rows = Mapping[tuple[str, str], Row]
"""The rows of one server by workload and method."""
BASE = "gepa_sync"
ESTIMATED, KNOWN = "gepa_pxn_8x8", "gepa_pxn_4x4"
"""The PxN width whose rounds outlast the windows, and the width that its rate is estimated by."""
Curve = Sequence[tuple[float, float]]


def by_server(rows: Sequence[Row]) -> dict[str, Rows]:
    """The rows of each server, in the order of the file."""
    found: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        found.setdefault(row["server"], {})[row["workload"], row["method"]] = row
    return {**found}


def methods(rows: Rows, start: str = "") -> list[str]:
    """The methods whose names begin so."""
    return list(dict.fromkeys(method for _, method in rows if method.startswith(start)))


def workloads(rows: Rows, *wanted: str) -> list[str]:
    """The workloads that all these methods were run on."""
    names = dict.fromkeys(workload for workload, _ in rows)
    return [name for name in names if all((name, method) in rows for method in wanted)]


def values(row: Row, figure: str) -> list[float]:
    """A figure of each repeat. Older files have no ``values`` but two repeats at most, so that their range is the
    values.
    """
    return list((row["values"] if "values" in row else row["range"])[figure])


def curves(row: Row) -> Sequence[Curve]:
    """For each repeat, the worth of its best candidate over time: on rows held out, or, where that is not known, on the
    validation examples.
    """
    if row.get("held_out"):
        return [[(seconds, worth) for seconds, _, _, worth in run] for run in row["held_out"]]
    validated: Sequence[Curve] = row["curves"]
    return validated


def beside(rows: Rows, method: str, others: Sequence[str], figure: str) -> Ratio | None:
    """A figure of a method over that of the best of others; None where they had none of it on some workload, or one of
    the methods was not run.
    """
    if not others:
        return None
    return _ratio(
        tuple(
            (name, tuple(tuple(values(rows[name, each], figure)) for each in (method, *others)))
            for name in workloads(rows, method, *others)
        )
    )


def score_at_equal(rows: Rows, method: str, spent: Literal["calls", "tokens"]) -> Ratio | None:
    """A method's held-out score less synchronous gepa's, when all runs of both have spent as much as the one of them
    that spent least. None where held-out scores are not known.
    """
    names = workloads(rows, method, BASE)
    if not names or not all(rows[name, each].get("held_out") for name in names for each in (method, BASE)):
        return None
    scores = {}
    for name in names:
        pair = [rows[name, each] for each in (method, BASE)]
        least = min(min(values(row, spent)) for row in pair)
        scores[name] = [[worth_at(run, spent, least) for run in row["held_out"]] for row in pair]
    return difference(scores)


@cache
def _ratio(rates: tuple[tuple[str, tuple[tuple[float, ...], ...]], ...]) -> Ratio | None:
    return ratio(dict(rates))


def over_estimated_pxn(rows: Rows, method: str) -> Ratio | None:
    """Proposals/min over those of gepa's best PxN width, with an estimated rate in place of that of `ESTIMATED`.

    The estimate is that `ESTIMATED` makes as many proposals of its output tokens as `KNOWN` does of as many tokens,
    which is what it would come to in windows that last for many of its rounds. None where one of the two widths was
    not run.
    """
    widths = methods(rows, "gepa_pxn")
    if not {ESTIMATED, KNOWN} <= set(widths):
        return None
    rates = []
    for name in workloads(rows, method, *widths):
        known = rows[name, KNOWN]
        share = known["proposals_per_min"] / known["output_tokens_per_s"]
        estimated = tuple(share * tokens for tokens in values(rows[name, ESTIMATED], "output_tokens_per_s"))
        counted = (tuple(values(rows[name, each], "proposals_per_min")) for each in widths if each != ESTIMATED)
        own = tuple(values(rows[name, method], "proposals_per_min"))
        rates.append((name, (own, *counted, estimated)))
    return _ratio(tuple(rates))


def requests_beside(rows: Rows, method: str) -> float | None:
    """Requests per proposal over synchronous gepa's, the mean over workloads; None where one of the two made none."""
    pairs = [
        (rows[name, method]["requests_per_proposal"], rows[name, BASE]["requests_per_proposal"])
        for name in workloads(rows, method, BASE)
    ]
    if not pairs or any(own is None or theirs is None for own, theirs in pairs):
        return None
    return fmean(own / theirs for own, theirs in pairs)


@dataclass(frozen=True, slots=True)
class TimeToScore:
    """A method's time to what another reaches, over the other's.

    ``by_workload`` are quotients of mean times, where all runs of the method reach the score; ``reached`` of ``runs``
    do so, on the workloads that have such a score. ``by_run`` are the quotients of all runs, without an end for those
    that don't reach it.
    """

    by_workload: Mapping[str, float]
    reached: int
    runs: int
    by_run: Sequence[float] = ()

    @property
    def median(self) -> float | None:
        """Over all runs; infinite if half of them don't reach the score."""
        return median(self.by_run) if self.by_run else None

    @property
    def mean(self) -> float | None:
        return fmean(self.by_workload.values()) if self.by_workload else None


def time_to_score(rows: Rows, method: str, others: Sequence[str]) -> TimeToScore:
    """Time counts from the end of the seed's validation.

    On each workload the score is that of the other method with the highest mean at its windows' end: the lowest that
    its runs end with, so that all of them reach it. Of the others, the time is that of whichever reaches it first in
    all of its runs. A workload on which a run has that score from its seed says nothing and is left out.
    """
    by_workload: dict[str, float] = {}
    by_run: list[float] = []
    for name in workloads(rows, method, *others):
        theirs = {each: curves(rows[name, each]) for each in others}
        best = max(theirs.values(), key=lambda runs: fmean(curve[-1][1] for curve in runs))
        score = min(curve[-1][1] for curve in best)
        own = curves(rows[name, method])
        if any(curve[0][1] >= score for runs in (own, *theirs.values()) for curve in runs):
            continue
        times = [_time(curve, score) for curve in own]
        theirs_took = _soonest(theirs.values(), score)
        by_run += [math.inf if each is None else each / theirs_took for each in times]
        if None not in times:
            by_workload[name] = fmean(_known(times)) / theirs_took
    return TimeToScore(by_workload, sum(map(math.isfinite, by_run)), len(by_run), tuple(by_run))


def _soonest(methods: Iterable[Sequence[Curve]], score: float) -> float:
    all_times = ([_time(curve, score) for curve in curves] for curves in methods)
    return min(fmean(times) for times in map(_known, all_times) if times)


def _known(times: Sequence[float | None]) -> list[float]:
    """The times if all are known, else none of them."""
    return [each for each in times if each is not None] if None not in times else []


def _time(curve: Curve, score: float) -> float | None:
    """When a curve reaches a score, or None if it does not."""
    return next((seconds for seconds, reached in curve if reached >= score), None)
