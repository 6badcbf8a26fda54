"""The programs that parents are sampled from, and by which weights (Controlled Self-Evolution, §4.2 and appendix C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import cast

from flowevolve.pool import Add, Candidate, Update

INTEGRAL = "integral"
"""The metric of problems that measure memory over time: A, lower is better."""


@dataclass(frozen=True, slots=True)
class Reward:
    """F, higher is better: 1 / (A + epsilon) where the problem measures A, else by how much the score is above the
    problem's worst; 0 of what failed. An area is never below 0: a metric of that name that is, is something else.
    """

    worst: float
    epsilon: float

    def of(self, candidate: Candidate) -> float:
        if candidate.attributes.get("failure") is not None:
            return 0.0
        metrics = cast("Mapping[str, float]", candidate.attributes.get("metrics") or {})
        area = metrics.get(INTEGRAL, -1.0)
        if area >= 0:
            return 1 / (area + self.epsilon)
        return max(0.0, candidate.mean_score - self.worst)


class Population:
    """Every program that works, oldest first. A function of the log."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.last_failure: str | None = None

    def apply(self, update: Update) -> None:
        for change in update.changes:
            if isinstance(change, Add) and change.status == "rejected":
                self.last_failure = str(change.candidate.attributes["failure"])
            elif isinstance(change, Add):
                self.candidates.append(change.candidate)

    def best(self) -> Candidate | None:
        """The one with the highest score, of equals the oldest."""
        return max(self.candidates, key=lambda each: each.mean_score, default=None)


def sample(candidates: Sequence[Candidate], reward: Reward, count: int, random: Random) -> list[Candidate]:
    """Up to ``count`` different ones, one after another in proportion to their rewards; evenly where all have none.

    A program that was written more than once counts once, by the first of its ids. What is drawn does not hang on the
    order of the candidates: programs to plans come in in any.
    """
    twins = sorted(candidates, key=lambda each: each.id, reverse=True)
    left = sorted({each.artifact.id: each for each in twins}.values(), key=lambda each: each.id)
    sampled: list[Candidate] = []
    while left and len(sampled) < count:
        weights = [reward.of(each) for each in left]
        place = random.choices(range(len(left)), weights if any(weights) else None)[0]
        sampled.append(left.pop(place))
    return sampled
