"""Intervals of means."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.intervals import mean_interval


def test_a_single_value_and_equal_ones_tell_nothing_of_a_spread() -> None:
    assert mean_interval([0.3]) == (0.3, 0.3)
    assert mean_interval([1.0, 1.0, 1.0]) == (1.0, 1.0)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_it_is_inside_the_values_and_repeats(values: list[float]) -> None:
    low, high = mean_interval(values)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    assert mean_interval(values) == (low, high)


def test_it_holds_the_true_mean_about_as_often_as_it_says() -> None:
    random = Random(0)
    held = 0
    for _ in range(200):
        low, high = mean_interval([float(random.random() < 0.6) for _ in range(60)])
        held += low <= 0.6 <= high
    assert held / 200 == pytest.approx(0.95, abs=0.04)
