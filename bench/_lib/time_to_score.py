"""How soon a method reaches a score that another one ends with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean, median
from typing import Any, Literal

from bench._lib.house_style import PRECISION
from bench._lib.text import ranged

Row = Mapping[str, Any]
"""A row of the result file, as `bench._lib.methods.ratios.row` makes it."""
Rows = Mapping[tuple[str, str], Row]
"""The rows of one server by workload and method."""
Curve = Sequence[tuple[float, float]]


def workloads(rows: Rows, *wanted: str) -> list[str]:
    """The workloads that all these methods were run on."""
    names = dict.fromkeys(workload for workload, _ in rows)
    return [name for name in names if all((name, method) in rows for method in wanted)]


Spent = Literal["seconds", "tokens"]


def curves(row: Row, spent: Spent = "seconds") -> Sequence[Curve]:
    """For each repeat, the worth of its best candidate over time or over the tokens spent. The worth is measured on
    held-out rows or, if that is not known, on the validation examples; for the latter no tokens are known, so there are
    no curves over tokens.
    """
    if row.get("held_out"):
        return [
            [(tokens if spent == "tokens" else seconds, worth) for seconds, _, tokens, worth in run]
            for run in row["held_out"]
        ]
    validated: Sequence[Curve] = row["curves"] if spent == "seconds" else ()
    return validated


@dataclass(frozen=True, slots=True)
class TimeToScore:
    """A method's times to the scores that another reaches, divided by the other's times.

    ``by_run`` has, for each run of the method, one quotient for each run of the other; it is infinite if the run does
    not reach that score.
    """

    by_run: Sequence[Sequence[float]]

    @property
    def by_pair(self) -> Sequence[float]:
        return [quotient for run in self.by_run for quotient in run]

    @property
    def pairs(self) -> int:
        return len(self.by_pair)

    @property
    def reached(self) -> int:
        """In how many of the pairs the method reaches the score."""
        return sum(map(math.isfinite, self.by_pair))

    @property
    def sure(self) -> int:
        """How many of the method's runs reach every score."""
        return sum(all(map(math.isfinite, run)) for run in self.by_run)

    @property
    def median(self) -> float | None:
        """The median over all pairs; infinite if the score isn't reached in half of them. None without any pair."""
        return median(self.by_pair) if self.by_pair else None


def time_to_score(
    rows: Rows, method: str, others: Sequence[str], gain: float = 1.0, spent: Spent = "seconds", *, kept: bool = False
) -> TimeToScore:
    """Compare how soon a method and the best of ``others`` reach the scores of the latter.

    Time counts from the end of the seed's validation. With ``spent="tokens"`` the tokens spent, including those of that
    validation, take its place; workloads for which they are not known are skipped.

    On each workload the best of ``others`` are the method with the highest mean at the end of its windows and all whose
    mean can't be told apart from it. Each of their runs sets a score to reach: the one it ends with or, if ``gain`` is
    below 1, this share of the way to it from its seed's score. The method's time to this score is divided by the
    shortest time among that run and all runs of the rest of ``others``. A score that some run already has with its seed
    says nothing and is left out. Times are those at which a run first has a score or, with ``kept``, those from which
    on it has the score to its end.
    """
    by_run: list[Sequence[float]] = []
    for name in workloads(rows, method, *others):
        theirs = {each: curves(rows[name, each], spent) for each in others}
        own = curves(rows[name, method], spent)
        if not own or not all(theirs.values()):
            continue
        found: list[list[float]] = []
        for run, rivals in _best(theirs):
            score = run[0][1] + gain * (run[-1][1] - run[0][1])
            if any(_time(curve, score) <= curve[0][0] for curve in (*own, *rivals)):
                continue
            soonest = min(_time(curve, score, kept=kept) for curve in rivals)
            found.append([_time(curve, score, kept=kept) / soonest for curve in own])
        by_run += zip(*found, strict=True)
    return TimeToScore(by_run)


def _best(theirs: Mapping[str, Sequence[Curve]]) -> Iterator[tuple[Curve, Sequence[Curve]]]:
    """Yield each run of the best methods, together with the runs whose shortest time to its score counts: itself and
    those of all other methods.
    """
    means = {each: fmean(curve[-1][1] for curve in runs) for each, runs in theirs.items()}
    for each, mean in means.items():
        if mean >= max(means.values()) - PRECISION:
            elsewhere = [curve for other, runs in theirs.items() if other != each for curve in runs]
            yield from ((run, [run, *elsewhere]) for run in theirs[each])


def _time(curve: Curve, score: float, *, kept: bool = False) -> float:
    """When a curve first has a score or, with ``kept``, from when on it has the score to its end, as far as scores can
    be told apart; infinite if it never does.
    """
    if not kept:
        return next((seconds for seconds, reached in curve if reached >= score - PRECISION), math.inf)
    at_the_end = takewhile(lambda point: point[1] >= score - PRECISION, reversed(curve))
    return min((seconds for seconds, _ in at_the_end), default=math.inf)


@dataclass(frozen=True, slots=True)
class Afterwards:
    """In how many of the pairs a score was reached, in how many of these the best candidate was worth less at some
    later time, and in how many it was worth less at the end.
    """

    pairs: int
    reached: int
    later: int
    last: int


def afterwards(rows: Rows, method: str, other: str) -> Afterwards:
    """How often runs of the method kept a score that a run of the other ends with, once they had reached it."""
    having = [
        [worth >= run[-1][1] - PRECISION for _, worth in curve]
        for name in workloads(rows, method, other)
        for run in curves(rows[name, other])
        for curve in curves(rows[name, method])
    ]
    reached = [has[has.index(True) :] for has in having if any(has)]
    later, last = sum(not all(has) for has in reached), sum(not has[-1] for has in reached)
    return Afterwards(len(having), len(reached), later, last)


def median_share(timed: TimeToScore) -> str:
    """The median and the range over all pairs, and in how many of them the score is reached."""
    if timed.median is None:
        return "–"
    return f"{median_and_range(timed)}, {reached(timed)}"


def reached(timed: TimeToScore) -> str:
    """In how many pairs the score is reached. If only some pairs reach it and runs are in several pairs, also how many
    runs reach it in all of theirs.
    """
    told = len(timed.by_run) < timed.pairs and 0 < timed.reached < timed.pairs
    runs = f" (all pairs of {timed.sure} of {len(timed.by_run)} runs)" if told else ""
    return f"reached in {timed.reached} of {timed.pairs} pairs{runs}"


def median_and_range(timed: TimeToScore) -> str:
    if timed.median is None:
        return "–"
    shown = ranged({"median": timed.median, "low": min(timed.by_pair), "high": max(timed.by_pair)}, 2)
    return shown.replace("inf", "never")
