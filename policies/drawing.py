"""Drawing from a population: by rank, or evenly."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def by_rank(count: int) -> list[float]:
    """Weights for a population that is sorted best first: one over the rank (CodeEvolve, arXiv 2510.14150, eq. 2)."""
    return [1 / rank for rank in range(1, count + 1)]


def evenly(count: int) -> list[float]:
    """The same weight for each."""
    return [1.0] * count


def draw(items: Sequence[T], weights: Sequence[float], count: int, random: Random) -> list[T]:
    """Draw up to ``count`` of the items, one after another by their weights, none twice."""
    left = list(range(len(items)))
    drawn: list[T] = []
    while left and len(drawn) < count:
        (place,) = random.choices(left, [weights[each] for each in left])
        left.remove(place)
        drawn.append(items[place])
    return drawn
