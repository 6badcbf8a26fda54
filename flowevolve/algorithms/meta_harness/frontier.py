"""The frontier: the best harness of every data set, and the Pareto front of accuracy and context length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from pydantic import JsonValue

from flowevolve.core.pool import Annotate, Candidate, Update, Vetoed
from flowevolve.core.record import Attributes


class Result(Attributes):
    """What a benchmark found out about a harness."""

    accuracy: Mapping[str, float] = {}
    """By data set."""
    context_chars: float = 0.0
    """Mean number of characters of prompts per prediction, over the data sets."""
    mistakes: tuple[dict[str, JsonValue], ...] = ()
    report: str = ""
    """Why a harness is invalid."""

    @property
    def mean_accuracy(self) -> float:
        """The mean over the data sets, each with the same weight."""
        return fmean(self.accuracy.values())

    @property
    def rank(self) -> tuple[float, float]:
        """Accuracy and how short the context is: more is better in both."""
        return self.mean_accuracy, -self.context_chars


class Frontier:
    """An archive of scored harnesses."""

    def __init__(self) -> None:
        self._scored: list[Candidate] = []
        self._vetoed: set[str] = set()
        self._best: Candidate | None = None

    def apply(self, update: Update) -> None:
        self._scored += update.added()
        noted = {change.candidate_id: change.attributes for change in update.changes if isinstance(change, Annotate)}
        if noted:
            self._scored = [
                replace(each, attributes={**each.attributes, **noted.get(each.id, {})}) for each in self._scored
            ]
        for change in update.changes:
            if isinstance(change, Vetoed):
                (self._vetoed.add if change.stands else self._vetoed.discard)(change.candidate_id)
        self._best = max(self._standing(), key=lambda each: Result.of(each).rank, default=None)

    def best(self) -> Candidate | None:
        """The most accurate harness; of equally accurate ones the one with the shorter context, then the older one."""
        return self._best

    def front(self) -> Sequence[Candidate]:
        return frontier(self._standing())

    def _standing(self) -> list[Candidate]:
        return [each for each in self._scored if each.id not in self._vetoed]


def frontier(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The best harness of each data set, and those on the Pareto front of accuracy and context length, oldest first."""
    results = {each.id: Result.of(each) for each in candidates}
    ranks = {name: each.rank for name, each in results.items()}
    sets = sorted({name for each in results.values() for name in each.accuracy})
    best = {
        max(results, key=lambda name: (results[name].accuracy[data], -results[name].context_chars)) for data in sets
    }
    return [
        each
        for each in candidates
        if each.id in best or not any(_beats(other, ranks[each.id]) for other in ranks.values())
    ]


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and all(mine >= its for mine, its in zip(one, other, strict=True))
