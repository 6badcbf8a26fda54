"""95 % intervals of figures over repeats, and of paired differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from bench._lib.stats import Content, Interval

TIE = 1e-9
"""Scores that differ by at most this are equal: sums of the same numbers in another order differ by about as much."""
RESAMPLES = 10_000


def interval(
    groups: Sequence[Sequence[float]], statistic: Literal["mean", "median"] = "mean", *, of_ratios: bool = False
) -> Interval:
    """The 95 % bootstrap interval of the mean or median, widened for small samples.

    Values are resampled within each group; the groups themselves are fixed. The bounds are the percentiles of the
    resampled figures, moved `widening` times as far away from the figure. With ``of_ratios`` (values above 0) this is
    done with logarithms. The resampling is seeded, so equal values give equal bounds. For 3 or more normal values about
    5 % of the intervals miss the true mean; for skewed values up to 13 %, as with Student's t. Bounds of a score may
    lie beyond the lowest or highest possible score. Values without any spread give an interval of width 0, and a group
    of only one value gives infinite bounds.
    """
    generator = np.random.default_rng(0)
    of = np.mean if statistic == "mean" else np.median
    parts = [np.asarray(group, dtype=float) for group in groups]
    values = np.concatenate(parts)
    figure, kept = float(of(values)), [list(group) for group in groups]
    if any(len(part) == 1 for part in parts):
        return Interval(figure, -math.inf, math.inf, len(values), kept)
    drawn = [part[generator.integers(len(part), size=(RESAMPLES, len(part)))] for part in parts]
    ends = np.percentile(of(np.concatenate(drawn, axis=1), axis=1), [2.5, 97.5])
    wider = widening([(len(part), float(np.var(np.log(part) if of_ratios else part, ddof=1))) for part in parts])
    low, high = figure * (ends / figure) ** wider if of_ratios else figure + wider * (ends - figure)
    return Interval(figure, float(low), float(high), len(values), kept)


def widening(groups: Sequence[tuple[int, float]]) -> float:
    """The factor by which bootstrap percentiles are too narrow. ``groups`` has the size and variance of each group.

    The variance of resamples of n values is too small by (n - 1) / n, and percentiles ignore that the spread itself is
    uncertain, which Student's t accounts for (with Welch's degrees of freedom for several groups). After Hesterberg,
    What Teachers Should Know About the Bootstrap (2015), who widens the percentiles by as much. With fewer than eight
    values those would end at the lowest and the highest value, so this code widens distances from the figure instead.
    """
    spreads = [size * variance for size, variance in groups]
    if not any(spreads):
        return 1.0
    freedom = sum(spreads) ** 2 / sum(each**2 / (size - 1) for each, (size, _) in zip(spreads, groups, strict=True))
    resampled = sum((size - 1) * variance for size, variance in groups)
    return float(stdtrit(freedom, 0.975) / NormalDist().inv_cdf(0.975)) * math.sqrt(sum(spreads) / resampled)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Content:
    """Our scores minus those of other runs with the same seeds: the mean difference, and how often ours were better,
    equal and worse.
    """
    differences = [one - two for one, two in zip(ours, theirs, strict=True)]
    return {
        "difference": interval([differences]).as_json(),
        "better": sum(difference > TIE for difference in differences),
        "equal": sum(abs(difference) <= TIE for difference in differences),
        "worse": sum(difference < -TIE for difference in differences),
    }
