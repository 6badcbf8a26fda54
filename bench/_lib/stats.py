"""Statistics over repeats: spreads, and figures with an interval, which `bench._lib.intervals` computes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

Content = dict[str, object]
"""What a bench writes into its result file, or a part of it."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the range of one figure over seeds or repeats."""

    median: float
    low: float
    high: float
    n: int

    def as_json(self) -> dict[str, float]:
        return asdict(self)


def spread(values: Sequence[float]) -> Spread:
    """The median and the range of values."""
    return Spread(float(np.median(values)), min(values), max(values), len(values))


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with the bounds of its 95 % interval, and the values of each group. The bounds are infinite if there are
    too few values for an interval.
    """

    value: float
    low: float
    high: float
    n: int
    values: Sequence[Sequence[float]] = ()

    def as_json(self) -> Content:
        bounds = [self.low, self.high] if math.isfinite(self.low) else None
        return {"value": self.value, "ci95": bounds, "n": self.n, "values": self.values}
