"""Exploration schedules: how likely the next step of an island explores (CodeEvolve, arXiv 2510.14150, §4.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import cos, pi
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from flowevolve._util.settings import Settings

Probability = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Exploring:
    """The state of a schedule: the probability of exploring, and how many epochs are over.

    ``stale`` counts the epochs since the best program last improved or the probability was last raised.
    """

    rate: float
    epochs: int = 0
    stale: int = 0


class ExplorationSettings(Settings):
    """The probability that a step of an island explores.

    ``plateau`` explores more whenever ``patience`` epochs brought no improvement, and less after each that brought one.
    ``exponential`` begins at ``most`` and falls by ``factor`` an epoch, down to ``least``. ``cosine`` falls from
    ``most`` to ``least`` along half a cosine in ``period`` epochs, and stays there.
    """

    schedule: Literal["plateau", "exponential", "cosine"] = "plateau"
    initial: Probability = 0.2
    """``plateau``: the probability at the beginning; the other schedules begin at ``most``."""
    least: Probability = 0.2
    most: Probability = 0.5
    patience: int = Field(default=5, gt=0)
    """``plateau``: epochs without improvement after which the probability is raised."""
    up: float = Field(default=1.05, ge=1)
    down: float = Field(default=0.95, gt=0, le=1)
    """``plateau``: the factors by which the probability is raised, and lowered after an epoch with an improvement."""
    factor: float = Field(default=0.99, gt=0, le=1)
    """``exponential``: the factor by which the probability falls every epoch."""
    period: int = Field(default=250, gt=0)
    """``cosine``: epochs until the probability is at ``least``."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.least <= self.initial <= self.most:
            raise ValueError(
                f"initial is {self.initial:g}, but has to be from {self.least:g} (least) to {self.most:g} (most)"
            )
        return self

    def begin(self) -> Exploring:
        return Exploring(self.initial if self.schedule == "plateau" else self.most)

    def after(self, now: Exploring, *, improved: bool) -> Exploring:
        """The state after one more epoch; ``improved`` says whether the best program improved in it."""
        epochs = now.epochs + 1
        match self.schedule:
            case "exponential":
                return Exploring(max(self.least, self.most * self.factor**epochs), epochs)
            case "cosine":
                progress = min(epochs / self.period, 1.0)
                return Exploring(self.least + (self.most - self.least) * (1 + cos(pi * progress)) / 2, epochs)
            case "plateau" if improved or now.stale + 1 >= self.patience:
                rate = now.rate * (self.down if improved else self.up)
                return Exploring(min(self.most, max(self.least, rate)), epochs)
            case "plateau":
                return replace(now, epochs=epochs, stale=now.stale + 1)
