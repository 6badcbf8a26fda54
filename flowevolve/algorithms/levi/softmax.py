"""Sampling by score: the better the likelier, at a temperature (LEVI, §3)."""

from __future__ import annotations

import math
from collections.abc import Sequence


def softmax_weights(scores: Sequence[float], temperature: float) -> list[float]:
    """A weight in (0, 1] for each score, 1 for the highest; not normalised.

    Scores are first brought to [0, 1], the lowest and the highest of them, so that a temperature means the same on
    every scale. ``temperature`` is positive; the lower it is, the more the highest scores stand out.
    """
    lowest, highest = min(scores), max(scores)
    span = highest - lowest
    if span <= 0:
        return [1.0] * len(scores)
    return [math.exp(((score - lowest) / span - 1) / temperature) for score in scores]
