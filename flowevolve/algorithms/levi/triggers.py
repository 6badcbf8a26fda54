"""When LEVI shifts and looks back: by evaluations, which some commits are and others not."""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve.pool import Add, Update


@dataclass(slots=True)
class Evaluations:
    """Fires at every ``every``-th evaluation, and when ``stagnation`` of them in a row did not raise the best score,
    again after as many more. 0: never.

    Every evaluated candidate is added to the pool, those that failed as ``rejected``.
    """

    name: str
    stage: str
    every: int
    stagnation: int = 0
    every_seconds: float | None = None
    _count: int = 0
    _without: int = 0

    def fires(self, update: Update, improved: bool) -> bool:
        evaluated = sum(isinstance(change, Add) for change in update.changes)
        if not evaluated:
            return False
        before = self._count
        self._count += evaluated
        self._without = 0 if improved else self._without + evaluated
        due = self.every > 0 and before // self.every < self._count // self.every
        stagnant = 0 < self.stagnation <= self._without
        if stagnant:
            self._without = 0
        return due or stagnant
