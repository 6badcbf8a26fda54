"""Small statistics over repeats: spreads, bootstrap intervals and paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

Content = dict[str, object]
"""What a bench writes into its result file, or a part of it."""
TIE = 1e-9
"""Scores that differ by less count as equal: sums of the same numbers in another order differ by about as much."""


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
    """A figure with the bounds of its 95 % bootstrap interval."""

    value: float
    low: float
    high: float
    n: int

    def as_json(self) -> Content:
        return {"value": self.value, "ci95": [self.low, self.high], "n": self.n}


def interval(
    groups: Sequence[Sequence[float]], statistic: Literal["mean", "median"] = "mean", resamples: int = 10_000
) -> Interval:
    """Percentile bootstrap over all values, resampled inside each group: groups are fixed, what is in them is drawn.

    The resampling is seeded, so equal values give equal bounds.
    """
    generator = np.random.default_rng(0)
    of = np.mean if statistic == "mean" else np.median
    parts = [np.asarray(group, dtype=float) for group in groups]
    drawn = [part[generator.integers(len(part), size=(resamples, len(part)))] for part in parts]
    low, high = np.percentile(of(np.concatenate(drawn, axis=1), axis=1), [2.5, 97.5])
    values = np.concatenate(parts)
    return Interval(float(of(values)), float(low), float(high), len(values))


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Content:
    """Scores of runs less those of others with the same seeds: the mean difference, and how often who was better."""
    differences = [one - two for one, two in zip(ours, theirs, strict=True)]
    return {
        "difference": interval([differences]).as_json(),
        "better": sum(difference > TIE for difference in differences),
        "equal": sum(abs(difference) <= TIE for difference in differences),
        "worse": sum(difference < -TIE for difference in differences),
    }
