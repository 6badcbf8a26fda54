"""Small triggers, for graphs of tests."""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve.core.pool import Update


@dataclass(slots=True)
class EveryCommits:
    """Fires at every ``count``-th pool update."""

    name: str
    stage: str
    count: int

    def fires(self, update: Update, improved: bool) -> bool:
        return update.version % self.count == 0


@dataclass(slots=True)
class Stagnation:
    """Fires when ``count`` updates in a row did not raise the best score, and again after every ``count`` more."""

    name: str
    stage: str
    count: int
    _without: int = 0

    def fires(self, update: Update, improved: bool) -> bool:
        self._without = 0 if improved else self._without + 1
        if self._without < self.count:
            return False
        self._without = 0
        return True
