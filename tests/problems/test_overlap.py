"""Erdős's minimum overlap, against its definition."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from flowevolve.problems.limits import LimitSettings
from flowevolve.problems.overlap import MinimumOverlap
from tests.support.problem_checks import refusal, score

PROBLEM = MinimumOverlap()


def test_what_can_be_reckoned_by_hand() -> None:
    for steps in (1, 2, 7):
        assert score(PROBLEM, [0.5] * steps).value == pytest.approx(2)  # at k = 0 half of h meets half of the rest
    assert score(PROBLEM, [1, 0]).value == pytest.approx(1)  # moved by 1, all of h meets the rest
    assert score(PROBLEM, [0, 1]).value == pytest.approx(1)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_values_are_the_largest_overlaps(heights: list[int]) -> None:
    steps = [Fraction(height, 6) for height in heights] + [Fraction(6 - height, 6) for height in heights]
    n, width = len(steps), Fraction(2, len(steps))

    def overlap(k: Fraction) -> Fraction:
        cuts = sorted({width * i for i in range(n + 1)} | {width * i - k for i in range(n + 1)})
        inside = [(a, b) for a, b in pairwise(cuts) if 0 <= (a + b) / 2 < 2 and 0 <= (a + b) / 2 + k < 2]
        middles = [((a + b) / 2, b - a) for a, b in inside]
        return sum(
            (steps[int(x / width)] * (1 - steps[int((x + k) / width)]) * wide for x, wide in middles), Fraction(0)
        )

    largest = max(overlap(width * Fraction(i, 2)) for i in range(-2 * n, 2 * n + 1))
    assert score(PROBLEM, [float(step) for step in steps]).value == pytest.approx(float(1 / largest))


def test_a_mean_that_is_a_little_off_is_mended() -> None:
    loose = MinimumOverlap(LimitSettings(tolerance=1e-6))
    assert score(loose, [0.5 + 5e-7, 0.5]).value == pytest.approx(2)
    assert refusal(PROBLEM, [0.5 + 5e-7, 0.5]).startswith("the mean of the heights is 0.50000025; it must be 1/2")


@pytest.mark.parametrize("rising", [True, False])
def test_heights_near_1_are_mended_without_a_loss(rising: bool) -> None:
    loose = MinimumOverlap(LimitSettings(tolerance=1e-6))
    given, mended = [1, 1 - 2e-6, 0, 0], [1, 1 - 2e-6 * (1 - 1e-6), 1e-6, 1e-6]  # what they lack to 1, times 1 - 1e-6
    if not rising:
        given, mended = [1 - height for height in given], [1 - height for height in mended]
    assert score(loose, given).value == pytest.approx(score(PROBLEM, mended).value, rel=1e-9)


@pytest.mark.parametrize(
    ("heights", "says"),
    [
        ([], "heights must have 1 to"),
        ([0.4, 0.4], "the mean of the heights is 0.4; it must be 1/2"),
        ([-0.5, 1.5], "heights[0] is -0.5; each must be from 0 to 1"),
        ([0.5, None], "heights[1] must be a number, not null"),
        ([0.0], "the mean of the heights is 0"),
    ],
)
def test_wrong_heights_are_refused(heights: object, says: str) -> None:
    assert refusal(PROBLEM, heights).startswith(says)
