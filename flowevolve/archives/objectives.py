"""What a Pareto front is for: an example, an objective, or an objective on an example.

An objective is a metric that the task gives with its scores, or the length of a candidate's texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve._util.errors import InputError
from flowevolve._util.user_warnings import warn_user
from flowevolve.core.assessment import Assessment
from flowevolve.core.pool import Candidate

FrontKind = Literal["instance", "objective", "hybrid", "cartesian"]
"""What there is a front for: each example; each objective; both; or each objective on each example. The names are those
of ``frontier_type`` in the package gepa.
"""
LENGTH = "length"
"""The objective that every candidate has: the number of characters of its texts."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric of a task's scores, or the length. ``sign`` is -1 if less of it is better."""

    name: str
    sign: int

    @classmethod
    def of(cls, said: str) -> Objective:
        """The objective that a setting names; a minus before the name says that less is better."""
        return cls(said.removeprefix("-"), -1 if said.startswith("-") else 1)

    def of_examples(self, candidate: Candidate, measured: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """The candidate's values by example, as far as they were measured, signed so that more is better. The length is
        the same on each.
        """
        if self.name == LENGTH:
            characters = sum(map(len, candidate.artifact.values()))
            return dict.fromkeys(candidate.scores, self.sign * float(characters))
        return {
            example: self.sign * measured[example][self.name]
            for example in candidate.scores
            if self.name in measured.get(example, {})
        }


class FrontScores:
    """Gives the scores of a candidate that decide which fronts it is on, by what each front is for."""

    def __init__(self, kind: FrontKind, objectives: Sequence[str]) -> None:
        """Raises: InputError if ``kind`` needs objectives and none is named, or needs none and some are named."""
        if (kind == "instance") == bool(objectives):
            mend = "needs objectives; name at least one" if kind != "instance" else "uses no objectives; leave them out"
            raise InputError(f"algorithm.archive.objectives is {list(objectives)}, but fronts = {kind!r} {mend}")
        self._kind = kind
        self._objectives = [Objective.of(said) for said in objectives]
        self._known: dict[str, Mapping[str, float]] = {}

    def __call__(self, candidate: Candidate) -> Mapping[str, float]:
        if self._kind == "instance":
            return candidate.scores
        if candidate.id not in self._known:
            self._known[candidate.id] = self._of(candidate)
        return self._known[candidate.id]

    def forget(self, candidate: Candidate) -> None:
        """Forget what was computed for a candidate, because its scores have changed."""
        self._known.pop(candidate.id, None)

    def check(self, first: Candidate) -> None:
        """Warn of an objective that some of the first candidate's scores lack.

        Raises:
            InputError: if none of them has it.
        """
        measured = Assessment.of(first).metrics_by_example
        for objective in self._objectives:
            having = len(objective.of_examples(first, measured))
            if not having:
                there = ", ".join(dict.fromkeys(name for each in measured.values() for name in each)) or "no metrics"
                said = f"no score of the seed has {objective.name!r} in its metrics; they have {there}"
                raise InputError(f"algorithm.archive.objectives: {said}")
            if having < len(first.scores) and self._kind != "cartesian":
                warn_user(
                    f"algorithm.archive.objectives: only {having} of the {len(first.scores)} scores of the seed have "
                    f"{objective.name!r} in their metrics; a candidate whose scores lack it is not on its front"
                )

    def _of(self, candidate: Candidate) -> Mapping[str, float]:
        measured = Assessment.of(candidate).metrics_by_example
        found = {each.name: each.of_examples(candidate, measured) for each in self._objectives}
        if self._kind == "cartesian":
            return {f"{name} of {key}": score for name, scores in found.items() for key, score in scores.items()}
        whole = {name: scores for name, scores in found.items() if len(scores) == len(candidate.scores)}
        means = {f"objective {name}": sum(scores.values()) / len(scores) for name, scores in whole.items() if scores}
        return {**candidate.scores, **means} if self._kind == "hybrid" else means
