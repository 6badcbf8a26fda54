"""Sampling by score."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from flowevolve.algorithms.levi.select import softmax_weights


def test_weights_against_numbers_worked_out_by_hand() -> None:
    assert softmax_weights([2.0, 4.0, 3.0], 0.5) == pytest.approx([math.exp(-2), 1.0, math.exp(-1)])
    assert softmax_weights([7.0, 7.0], 0.3) == [1.0, 1.0]


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=20), st.floats(0.1, 2), st.integers(1, 50))
def test_a_scale_makes_no_difference(scores: list[int], temperature: float, factor: int) -> None:
    weights = softmax_weights(scores, temperature)
    assert softmax_weights([factor * score - 3 for score in scores], temperature) == pytest.approx(weights)
    assert max(weights) == 1.0
    assert min(weights) > 0
