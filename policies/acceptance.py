"""Acceptance policies: whether a child beats its parent on the minibatch on which both were run, and whether a
validated candidate enters the pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from flowevolve._util.errors import InputError
from flowevolve.core.policies import Standing


class Acceptance(Protocol):
    def accepts(self, child: Sequence[float], baseline: Sequence[float]) -> bool:
        """Whether the child's scores beat the baseline's. Both are on the same examples, in the same order."""
        ...


@dataclass(frozen=True, slots=True)
class StrictImprovement:
    """The sum must rise (GEPA's default)."""

    def accepts(self, child: Sequence[float], baseline: Sequence[float]) -> bool:
        return sum(child) > sum(baseline)


@dataclass(frozen=True, slots=True)
class ImprovementOrEqual:
    """The sum must not fall."""

    def accepts(self, child: Sequence[float], baseline: Sequence[float]) -> bool:
        return sum(child) >= sum(baseline)


@dataclass(frozen=True, slots=True)
class Paired:
    """The sum must rise, over as many repeats as it takes to tell this from chance: a sequential test on the same
    examples.

    A comparison is open while the difference of the sums is at most ``z`` standard errors from 0 and there were fewer
    than ``repeats`` repeats. While it is unknown how much scores vary, there is one repeat; if they don't vary, none.

    Raises:
        InputError: if a setting is out of range.
    """

    z: float = 1.0
    repeats: int = 3

    def __post_init__(self) -> None:
        if not self.z > 0:
            raise InputError(f"algorithm.acceptance_z is {self.z:g}, but has to be above 0")
        if self.repeats < 1:
            raise InputError(f"algorithm.acceptance_repeats is {self.repeats}, but has to be at least 1")

    def is_open(
        self, child: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]], noise: float | None
    ) -> bool:
        """Whether another repeat may decide the comparison. ``child`` and ``baseline`` hold the scores of each run, on
        the same examples in the same order; ``noise`` is the variance of a score between repeats, None while it is
        unknown.
        """
        runs, examples = len(child), len(child[0])
        if runs > self.repeats:
            return False
        if noise is None:
            return runs == 1
        difference = (sum(map(sum, child)) - sum(map(sum, baseline))) / runs
        return noise > 0 and abs(difference) <= self.z * (2 * examples * noise / runs) ** 0.5

    def accepts(self, child: Sequence[float], baseline: Sequence[float]) -> bool:
        return sum(child) > sum(baseline)


@dataclass(frozen=True, slots=True)
class Everything:
    """Every validated candidate enters; which of them are used is left to selection (GEPA as published)."""

    def admits(self, scores: Mapping[str, float], standing: Standing) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Improvement:
    """The mean must be higher than the best one so far (FlashEvolve's condition for speculative candidates)."""

    def admits(self, scores: Mapping[str, float], standing: Standing) -> bool:
        return sum(scores.values()) > sum(standing.incumbent[name] for name in scores)


@dataclass(frozen=True, slots=True)
class Front:
    """A candidate must have the highest mean so far, or the highest score on some example, as Pareto selection uses."""

    def admits(self, scores: Mapping[str, float], standing: Standing) -> bool:
        if Improvement().admits(scores, standing):
            return True
        return any(score > standing.front[name] for name, score in scores.items())
