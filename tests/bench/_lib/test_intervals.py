"""Intervals: how often they hold the truth, and what they say of very few values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench._lib.intervals import interval, widening
from bench._lib.text import around, direction

TRIALS = 1500
"""By which a share of 0.95 is known to about 0.006."""


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench._lib.intervals.RESAMPLES", 1000)


@pytest.mark.parametrize("size", [3, 4, 5, 10, 12, 20])
def test_intervals_of_a_mean_hold_it_19_times_in_20(size: int) -> None:
    generator = np.random.default_rng(size)
    found = [interval([generator.normal(size=size).tolist()]) for _ in range(TRIALS)]
    assert 0.93 <= np.mean([each.low <= 0 <= each.high for each in found]) <= 0.975


@pytest.mark.parametrize("size", [3, 5, 10, 20])
def test_intervals_of_skewed_values_are_about_as_honest_as_students_t(size: int) -> None:
    generator = np.random.default_rng(size)
    found = [interval([generator.exponential(size=size).tolist()]) for _ in range(TRIALS)]
    assert np.mean([each.low <= 1 <= each.high for each in found]) >= 0.86


@pytest.mark.parametrize("size", [3, 4, 5, 7, 10, 20])
def test_intervals_of_a_median_ratio_hold_it_and_stay_above_0(size: int) -> None:
    generator = np.random.default_rng(size)
    found = [interval([generator.lognormal(size=size).tolist()], "median", of_ratios=True) for _ in range(TRIALS)]
    assert np.mean([each.low <= 1 <= each.high for each in found]) >= 0.9
    assert min(each.low for each in found) > 0


def test_groups_are_fixed_and_may_differ_in_spread() -> None:
    generator = np.random.default_rng(0)
    found = [
        interval([generator.normal(5.0, 0.1, 4).tolist(), generator.normal(-5.0, 1.0, 4).tolist()])
        for _ in range(TRIALS)
    ]
    assert 0.93 <= np.mean([each.low <= 0 <= each.high for each in found]) <= 0.99
    assert np.median([each.high - each.low for each in found]) < 3


@pytest.mark.parametrize(("size", "quantile"), [(2, 12.7062), (3, 4.3027), (5, 2.7764), (10, 2.2622), (20, 2.0930)])
def test_one_group_is_widened_to_students_t(size: int, quantile: float) -> None:
    assert widening([(size, 0.3)]) == pytest.approx(quantile / 1.95996 * math.sqrt(size / (size - 1)), rel=1e-4)


def test_groups_have_welchs_degrees_of_freedom() -> None:
    alike, apart = widening([(5, 1.0), (5, 1.0)]), widening([(5, 1.0), (5, 0.0)])
    assert alike == pytest.approx(2.3060 / 1.95996 * math.sqrt(5 / 4), rel=1e-4)
    assert apart == pytest.approx(widening([(5, 1.0)]))


def test_one_value_has_no_interval_and_finds_no_direction() -> None:
    found = interval([[0.25]]).as_json()
    assert found == {"value": 0.25, "ci95": None, "n": 1, "values": [[0.25]]}
    assert around(found, "{:.2f}".format) == "0.25"
    assert direction(found) == "not found"


def test_values_without_spread_have_an_interval_without_width() -> None:
    found = interval([[0.5] * 3])
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)
    assert interval([[1.5] * 3], "median", of_ratios=True).as_json()["ci95"] == [1.5, 1.5]


def test_equal_values_give_equal_bounds() -> None:
    assert interval([[0.0, 1.0, 2.0, 3.0, 10.0]], "median") == interval([[0.0, 1.0, 2.0, 3.0, 10.0]], "median")
