"""Acceptance policies: whether a child beats its parent on the minibatch both were run on, and whether a validated
candidate enters the pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from flowevolve.core.policies import Standing


class Acceptance(Protocol):
    def accepts(self, child: Sequence[float], baseline: Sequence[float]) -> bool:
        """Scores on the same examples, in the same order."""
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
