"""The frontier: the best harness of every data set, and the Pareto front of accuracy and context length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import cast

from flowevolve.pool import Annotate, Candidate, Update

ACCURACY, CONTEXT = "accuracy", "context_chars"
"""Attributes: accuracy by data set; mean characters of prompts per prediction, over the data sets."""


def accuracies(candidate: Candidate) -> Mapping[str, float]:
    return cast("Mapping[str, float]", candidate.attributes[ACCURACY])


def accuracy(candidate: Candidate) -> float:
    """The mean over the data sets, each with the same weight."""
    return fmean(accuracies(candidate).values())


def context_chars(candidate: Candidate) -> float:
    return cast(float, candidate.attributes[CONTEXT])


class Frontier:
    """An archive of scored harnesses."""

    def __init__(self) -> None:
        self._scored: list[Candidate] = []

    def apply(self, update: Update) -> None:
        self._scored += update.added()
        noted = {change.candidate_id: change.attributes for change in update.changes if isinstance(change, Annotate)}
        if noted:
            self._scored = [
                replace(each, attributes={**each.attributes, **noted.get(each.id, {})}) for each in self._scored
            ]

    def best(self) -> Candidate | None:
        """The most accurate; of equals the one with the shorter context, then the older one."""
        return best_of(self._scored)

    def front(self) -> Sequence[Candidate]:
        return frontier(self._scored)


def best_of(candidates: Sequence[Candidate]) -> Candidate | None:
    return max(candidates, key=lambda each: (accuracy(each), -context_chars(each)), default=None)


def frontier(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The best per data set and those that no other beats in both respects, oldest first."""
    sets = sorted({name for each in candidates for name in accuracies(each)})
    best = {max(candidates, key=lambda each: (accuracies(each)[name], -context_chars(each))).id for name in sets}
    return [each for each in candidates if each.id in best or not any(_beats(other, each) for other in candidates)]


def _beats(one: Candidate, other: Candidate) -> bool:
    better = (accuracy(one), -context_chars(one)), (accuracy(other), -context_chars(other))
    return better[0] != better[1] and all(mine >= its for mine, its in zip(*better, strict=True))
