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
"""Scores that differ by less count as equal: sums of the same numbers in another order differ by about as much."""
RESAMPLES = 10_000


def interval(
    groups: Sequence[Sequence[float]], statistic: Literal["mean", "median"] = "mean", *, of_ratios: bool = False
) -> Interval:
    """The 95 % interval by a bootstrap that is widened for few values.

    Values are resampled inside each group: groups are fixed, what is in them is drawn. The bounds are the percentiles
    of what was drawn, `widening` times as far from the figure; of ratios, which are above 0, by their logarithms. The
    resampling is seeded, so equal values give equal bounds. Of normal values, 3 or more, about 5 % of the intervals
    leave out the true mean; of skewed ones up to 13 %, as with Student's t. Bounds of a score may lie beyond the least
    or the highest possible score. Values without any spread give an interval without width.
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
    """How many times too narrow the percentiles of a bootstrap are for groups with these sizes and variances.

    Resamples of n values vary by (n - 1) / n too little, and percentiles know nothing of how uncertain the spread
    itself is, which Student's t does (with Welch's degrees of freedom, for several groups). After Hesterberg, What
    Teachers Should Know About the Bootstrap (2015), who widens percentiles by as much; with fewer than eight values
    these would end at the lowest and the highest one, so distances are widened here.
    """
    spreads = [size * variance for size, variance in groups]
    if not any(spreads):
        return 1.0
    freedom = sum(spreads) ** 2 / sum(each**2 / (size - 1) for each, (size, _) in zip(spreads, groups, strict=True))
    resampled = sum((size - 1) * variance for size, variance in groups)
    return float(stdtrit(freedom, 0.975) / NormalDist().inv_cdf(0.975)) * math.sqrt(sum(spreads) / resampled)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Content:
    """Scores of runs less those of others with the same seeds: the mean difference, and how often who was better."""
    differences = [one - two for one, two in zip(ours, theirs, strict=True)]
    return {
        "difference": interval([differences]).as_json(),
        "better": sum(difference > TIE for difference in differences),
        "equal": sum(abs(difference) <= TIE for difference in differences),
        "worse": sum(difference < -TIE for difference in differences),
    }
