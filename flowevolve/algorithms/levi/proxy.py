"""Proxy benchmarks: a few examples that rank candidates as all of them do (LEVI, §3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import fmean, pstdev

TOLERANCE = 1e-12
"""Numbers that differ by less count as equal."""

Matrix = Sequence[Sequence[float]]
"""Scores: a row for each candidate, a column for each example."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the terms of the objective."""

    rank: float = 0.5
    separation: float = 0.5
    redundancy: float = 0.15


def select_proxy(scores: Matrix, size: int, weights: Weights | None = None) -> tuple[int, ...]:
    """Choose the columns of a proxy benchmark greedily, the first of equally good ones; returns them in this order.

    Each step adds the column that maximizes the weighted sum of the new subset's rank agreement and separation, minus
    the column's redundancy with those chosen before.

    Raises:
        ValueError: with fewer than two candidates, as there is nothing to rank.
    """
    if len(scores) < 2:
        raise ValueError(f"a proxy benchmark needs scores of 2 candidates, not {len(scores)}")
    counts = weights or Weights()
    columns = list(zip(*scores, strict=True))
    spreads = separations(scores)
    full = [fmean(row) for row in scores]
    chosen: list[int] = []
    sums = [0.0] * len(scores)
    spread = 0.0
    likeness = [0.0] * len(columns)
    while len(chosen) < min(size, len(columns)):
        best, best_worth = -1, -float("inf")
        length = len(chosen) + 1
        for place, column in enumerate(columns):
            if place in chosen:
                continue
            means = [(total + value) / length for total, value in zip(sums, column, strict=True)]
            redundancy = likeness[place] / len(chosen) if chosen else 0.0
            worth = (
                counts.rank * rank_agreement(means, full)
                + counts.separation * (spread + spreads[place]) / length
                - counts.redundancy * redundancy
            )
            if worth > best_worth + TOLERANCE:
                best, best_worth = place, worth
        chosen.append(best)
        sums = [total + value for total, value in zip(sums, columns[best], strict=True)]
        spread += spreads[best]
        likeness = [
            total + abs(correlation(column, columns[best])) for total, column in zip(likeness, columns, strict=True)
        ]
    return tuple(chosen)


def rank_agreement(some: Sequence[float], full: Sequence[float]) -> float:
    """The share of pairs that both orders agree on: a tie in both counts 1, a tie in one of them 0.5."""
    pairs = list(combinations(range(len(full)), 2))
    return sum(_agreement(some[a] - some[b], full[a] - full[b]) for a, b in pairs) / len(pairs)


def _agreement(some: float, full: float) -> float:
    ties = (abs(some) <= TOLERANCE) + (abs(full) <= TOLERANCE)
    if ties:
        return 1.0 if ties == 2 else 0.5
    return float((some > 0) == (full > 0))


def separations(scores: Matrix) -> list[float]:
    """How well each column tells candidates apart: its standard deviation, as a share of the largest one."""
    deviations = [pstdev(column) for column in zip(*scores, strict=True)]
    largest = max(deviations, default=0.0)
    return [deviation / largest if largest > TOLERANCE else 0.0 for deviation in deviations]


def correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson's correlation; if a column is constant, 1 if both are equal, else 0."""
    mean_one, mean_other = fmean(one), fmean(other)
    pairs = [(a - mean_one, b - mean_other) for a, b in zip(one, other, strict=True)]
    square_one, square_other = sum(a * a for a, _ in pairs), sum(b * b for _, b in pairs)
    if square_one <= TOLERANCE or square_other <= TOLERANCE:
        return float(all(abs(a - b) <= TOLERANCE for a, b in zip(one, other, strict=True)))
    return sum(a * b for a, b in pairs) / sqrt(square_one * square_other)
