"""Counts of what went through a run: facts for reports, nothing decides by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Level:
    """A number that goes up and down, and its mean over time."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._since = self._changed = now()
        self._seconds = 0.0
        self.value = 0

    def add(self, by: int) -> None:
        self._account()
        self.value += by

    @contextmanager
    def one_more(self) -> Generator[None]:
        """One higher for the length of a ``with``."""
        self.add(1)
        try:
            yield
        finally:
            self.add(-1)

    def take_mean(self) -> float:
        """The mean since this was last asked."""
        self._account()
        lasted, total = self._changed - self._since, self._seconds
        self._since, self._seconds = self._changed, 0.0
        return total / lasted if lasted > 0 else float(self.value)

    def _account(self) -> None:
        now = self._now()
        self._seconds += self.value * (now - self._changed)
        self._changed = now


@dataclass(slots=True)
class StageCounts:
    """What went through one stage, and what was spent there. ``busy_seconds`` sums over its workers."""

    items_in: int = 0
    items_out: int = 0
    """Handed on; neither what was sent to repair nor what was released ahead of a result."""
    consumed: int = 0
    discarded: int = 0
    busy_seconds: float = 0.0
    gaps: int = 0
    """Version gaps of the items taken, added up."""
    rollouts: int = 0
    tokens: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class StalenessCounts:
    """``seen`` counts items taken with a version gap or derived from a revoked candidate."""

    seen: int = 0
    discarded: int = 0
    repaired: int = 0
    max_gap: int = 0


@dataclass(slots=True)
class SpeculationCounts:
    """Candidates that entered the pool on a part of their scores, and what became of them."""

    released: int = 0
    confirmed: int = 0
    revoked: int = 0


@dataclass(slots=True)
class RacingCounts:
    """Evaluations stopped before their end. ``tokens_saved`` is an upper estimate: the rollouts that were not finished
    times the mean tokens of those of the same stage that were. Of requests cancelled on the wire the server had written
    a part already, which it does not report.
    """

    stopped: int = 0
    rollouts_saved: int = 0
    tokens_saved: int = 0
