"""Exploration schedules: how likely the next step of an island explores (CodeEvolve, arXiv 2510.14150, §4.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import cos, pi
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Exploring:
    """Where a schedule stands: the probability of exploring, and how many epochs are over.

    ``stale`` counts those since the last that improved on the best, or that the probability was raised for.
    """

    rate: float
    epochs: int = 0
    stale: int = 0


class Schedule(Protocol):
    """Pure."""

    def begin(self) -> Exploring: ...
    def after(self, now: Exploring, *, improved: bool) -> Exploring:
        """What holds after one more epoch; ``improved`` says whether the best got better in it."""
        ...


@dataclass(frozen=True, slots=True)
class Plateau:
    """Explores more whenever ``patience`` epochs brought nothing, and less after each that brought something."""

    initial: float = 0.2
    least: float = 0.2
    most: float = 0.5
    patience: int = 5
    up: float = 1.05
    down: float = 0.95

    def begin(self) -> Exploring:
        return Exploring(self._within(self.initial))

    def after(self, now: Exploring, *, improved: bool) -> Exploring:
        epochs = now.epochs + 1
        if improved:
            return Exploring(self._within(now.rate * self.down), epochs)
        if now.stale + 1 >= self.patience:
            return Exploring(self._within(now.rate * self.up), epochs)
        return replace(now, epochs=epochs, stale=now.stale + 1)

    def _within(self, rate: float) -> float:
        return min(self.most, max(self.least, rate))


@dataclass(frozen=True, slots=True)
class Exponential:
    """Begins at ``most`` and falls by ``factor`` an epoch, down to ``least``."""

    least: float = 0.2
    most: float = 0.5
    factor: float = 0.99

    def begin(self) -> Exploring:
        return Exploring(self.most)

    def after(self, now: Exploring, *, improved: bool) -> Exploring:
        epochs = now.epochs + 1
        return Exploring(max(self.least, self.most * self.factor**epochs), epochs)


@dataclass(frozen=True, slots=True)
class Cosine:
    """Falls from ``most`` to ``least`` along half a cosine in ``period`` epochs, and stays there."""

    least: float = 0.2
    most: float = 0.5
    period: int = 250

    def begin(self) -> Exploring:
        return Exploring(self.most)

    def after(self, now: Exploring, *, improved: bool) -> Exploring:
        epochs = now.epochs + 1
        progress = min(epochs / self.period, 1.0)
        return Exploring(self.least + (self.most - self.least) * (1 + cos(pi * progress)) / 2, epochs)
