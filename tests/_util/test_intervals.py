"""Intervals of means."""

from __future__ import annotations

import tracemalloc
from random import Random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from flowevolve._util.intervals import RESAMPLES, mean_interval


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


def test_means_of_many_values_take_little_memory() -> None:
    random = Random(0)
    values = [random.random() for _ in range(20_000)]
    mean_interval([0.0, 1.0])  # so that what numpy keeps is not counted
    tracemalloc.start()
    try:
        mean_interval(values)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("count", [2, 7, 300, 5000])
def test_it_is_the_same_however_many_values_are_drawn_together(count: int) -> None:
    random = Random(count)
    values = np.array([random.random() for _ in range(count)])
    drawn = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    assert mean_interval(values.tolist()) == pytest.approx((low, high))
