"""What the rows of a result file come to: a figure beside another method's, and times to a score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median
from typing import Any, Literal

from bench._lib.house_style import PRECISION
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
    """A method's times to what another reaches, over the other's.

    ``by_pair`` has a quotient for each run of the method beside each of the other's, without an end where the run does
    not reach that score. ``by_workload`` are the means on the workloads where all pairs have one.
    """

    by_workload: Mapping[str, float]
    by_pair: Sequence[float]

    @property
    def pairs(self) -> int:
        return len(self.by_pair)

    @property
    def reached(self) -> int:
        """How many of the pairs have the score."""
        return sum(map(math.isfinite, self.by_pair))

    @property
    def median(self) -> float | None:
        """Over all pairs; infinite if half of them don't have the score."""
        return median(self.by_pair) if self.by_pair else None

    @property
    def mean(self) -> float | None:
        return fmean(self.by_workload.values()) if self.by_workload else None


def time_to_score(rows: Rows, method: str, others: Sequence[str], gain: float = 1.0) -> TimeToScore:
    """Time counts from the end of the seed's validation.

    On each workload the other is the method of ``others`` with the highest mean at its windows' end. Each of its runs
    sets a score: the one it ends with or, where ``gain`` is less than 1, so much of the way to it from its seed's. The
    time beside which a run is that run's own, or that of the soonest run of another of ``others``. A score that some
    run has with its seed says nothing and is left out.
    """
    by_workload: dict[str, float] = {}
    by_pair: list[float] = []
    for name in workloads(rows, method, *others):
        theirs = {each: curves(rows[name, each]) for each in others}
        best = max(theirs, key=lambda each: fmean(curve[-1][1] for curve in theirs[each]))
        own = curves(rows[name, method])
        elsewhere = [curve for each, runs in theirs.items() if each != best for curve in runs]
        found: list[float] = []
        for run in theirs[best]:
            score = run[0][1] + gain * (run[-1][1] - run[0][1])
            rivals = [run, *elsewhere]
            if any(_time(curve, score) <= curve[0][0] for curve in (*own, *rivals)):
                continue
            soonest = min(_time(curve, score) for curve in rivals)
            found += [_time(curve, score) / soonest for curve in own]
        by_pair += found
        if found and all(map(math.isfinite, found)):
            by_workload[name] = fmean(found)
    return TimeToScore(by_workload, by_pair)


def _time(curve: Curve, score: float) -> float:
    """When a curve has a score, as far as scores can be told apart; infinite if it never has."""
    return next((seconds for seconds, reached in curve if reached >= score - PRECISION), math.inf)
