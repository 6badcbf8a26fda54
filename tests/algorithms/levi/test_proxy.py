"""Proxy benchmarks against a plain reading of their definition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, pstdev

import pytest
from hypothesis import given, strategies as st

from flowevolve.algorithms.levi.proxy import Weights, correlation, rank_agreement, select_proxy, separations

MATRICES = st.integers(2, 5).flatmap(
    lambda rows: st.integers(1, 6).flatmap(
        lambda columns: st.lists(
            st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=columns, max_size=columns),
            min_size=rows,
            max_size=rows,
        )
    )
)


def worth(scores: Sequence[Sequence[float]], chosen: Sequence[int], place: int) -> float:
    """The objective of adding a column, every term worked out anew."""
    columns = list(zip(*scores, strict=True))
    subset = [*chosen, place]
    means, full = [fmean(row[j] for j in subset) for row in scores], [fmean(row) for row in scores]
    agreed = []
    for a, b in combinations(range(len(scores)), 2):
        one, other = means[a] - means[b], full[a] - full[b]
        ties = [abs(one) <= 1e-12, abs(other) <= 1e-12]
        agreed.append(1.0 if all(ties) else 0.5 if any(ties) else float((one > 0) == (other > 0)))
    largest = max(pstdev(column) for column in columns)
    apart = fmean(pstdev(columns[j]) / largest if largest > 1e-12 else 0.0 for j in subset)
    repeats = fmean(abs(correlation(columns[place], columns[j])) for j in chosen) if chosen else 0.0
    return 0.5 * fmean(agreed) + 0.5 * apart - 0.15 * repeats


@given(MATRICES, st.integers(1, 6))
def test_each_step_takes_the_first_of_the_best_columns(scores: list[list[float]], size: int) -> None:
    chosen = select_proxy(scores, size)
    assert len(chosen) == len(set(chosen)) == min(size, len(scores[0]))
    for step, place in enumerate(chosen):
        worths = {j: worth(scores, chosen[:step], j) for j in range(len(scores[0])) if j not in chosen[:step]}
        best = max(worths.values())
        assert place == min(j for j, value in worths.items() if value >= best - 1e-9)


def test_ties_count_half_or_whole() -> None:
    assert rank_agreement([1, 1, 1], [2, 2, 2]) == 1.0
    assert rank_agreement([1, 1], [1, 2]) == rank_agreement([1, 2], [5, 5]) == 0.5
    assert rank_agreement([1, 2], [1, 2]) == 1.0
    assert rank_agreement([2, 1], [1, 2]) == 0.0
    assert rank_agreement([0.1 + 0.2, 0.3], [1, 1]) == 1.0
    assert rank_agreement([1, 2, 2], [1, 2, 3]) == pytest.approx(2.5 / 3)


def test_constant_columns_are_alike_or_nothing() -> None:
    assert correlation([1, 1], [1, 1]) == 1.0
    assert correlation([1, 1], [0, 0]) == correlation([1, 1], [0, 1]) == 0.0
    assert correlation([0, 1, 2], [0, -2, -4]) == pytest.approx(-1.0)


def test_separation_is_a_share_of_the_largest() -> None:
    assert separations([[0.0, 1.0, 5.0], [1.0, 1.0, 5.5]]) == [1.0, 0.0, 0.5]
    assert separations([[1.0], [1.0]]) == [0.0]


def test_of_equal_columns_the_first_is_taken() -> None:
    assert select_proxy([[0, 0, 0], [1, 1, 1]], 2) == (0, 1)


def test_what_repeats_comes_after_what_does_not() -> None:
    scores = [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [1.0, 1.0, 0.4]]
    assert select_proxy(scores, 2, Weights(rank=0.0, separation=0.0, redundancy=1.0)) == (0, 2)


def test_one_candidate_ranks_nothing() -> None:
    with pytest.raises(ValueError, match="2 candidates, not 1"):
        select_proxy([[1.0, 2.0]], 1)
