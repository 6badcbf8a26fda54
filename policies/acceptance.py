"""Acceptance policies: whether a child beats its parent on the minibatch both were run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


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
