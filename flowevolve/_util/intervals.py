"""Intervals of means, by resampling, and how scores and intervals are printed."""

from __future__ import annotations

from collections.abc import Sequence

Interval = tuple[float, float]
RESAMPLES = 5000
_DRAWN_TOGETHER = 2**20
"""How many values are drawn at a time, so that resampling many values takes little memory."""


def score_said(score: object) -> str:
    """A score as it is printed everywhere; a dash if there is none."""
    return f"{score:.4f}" if isinstance(score, int | float) else "-"


def in_brackets(interval: Interval | None) -> str:
    """An interval as it is printed after a number; empty if both bounds are equal, as for a single example."""
    if interval is None:
        return ""
    low, high = interval
    return f" [{low:.4f} to {high:.4f}]" if low < high else ""


def mean_interval(values: Sequence[float]) -> Interval:
    """The 95 % interval of a mean of at least one value, by the percentile bootstrap.

    The resampling is seeded, so equal values give equal bounds. A single value says nothing about how much values vary:
    then both bounds are the mean.
    """
    mean = sum(values) / len(values)
    if min(values) == max(values):
        return (mean, mean)
    import numpy as np  # noqa: PLC0415 - slow to load, and not needed before a run has ended

    sample, generator = np.asarray(values, dtype=float), np.random.default_rng(0)
    together = max(1, _DRAWN_TOGETHER // len(sample))
    means: list[float] = []
    for begun in range(0, RESAMPLES, together):
        drawn = generator.integers(len(sample), size=(min(together, RESAMPLES - begun), len(sample)))
        means += sample[drawn].mean(axis=1).tolist()
    low, high = np.percentile(means, [2.5, 97.5])
    return (float(low), float(high))
