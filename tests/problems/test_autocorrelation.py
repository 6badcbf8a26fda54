"""Step functions and their autoconvolutions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from flowevolve.problems.autocorrelation import (
    MOST_STEPS,
    FirstAutocorrelation,
    SecondAutocorrelation,
    ThirdAutocorrelation,
)
from tests.support.problem_checks import refusal, score

FIRST, SECOND, THIRD = FirstAutocorrelation(), SecondAutocorrelation(), ThirdAutocorrelation()


def test_a_constant_has_a_triangle() -> None:
    """f = 1: f*f is a triangle of height 1/2 over (-1/2, 1/2)."""
    for steps in (1, 2, 7):
        assert score(FIRST, [3.0] * steps).value == pytest.approx((1 / 2) ** 2 / (1 / 2))
        assert score(SECOND, [3.0] * steps).value == pytest.approx((1 / 12) / (1 / 4 * 1 / 2))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any))
def test_values_are_the_integrals(heights: list[int]) -> None:
    """Exactly, from the definition: the integral of f(t - x) f(x) over each piece where both are constant."""
    n = len(heights)
    width = Fraction(1, 2 * n)

    def f(x: Fraction) -> int:
        place = (x + Fraction(1, 4)) / width
        return heights[int(place)] if 0 <= place < n else 0

    def g(t: Fraction) -> Fraction:
        cuts = sorted(
            {Fraction(-1, 4) + k * width for k in range(n + 1)} | {t + Fraction(1, 4) - k * width for k in range(n + 1)}
        )
        return sum((f((a + b) / 2) * f(t - (a + b) / 2) * (b - a) for a, b in pairwise(cuts)), Fraction(0))

    knots = [Fraction(-1, 2) + k * width for k in range(2 * n + 1)]
    at = [g(t) for t in knots]
    between = [g(t + width / 2) for t in knots[:-1]]
    squares = sum(
        ((a * a + 4 * m * m + b * b) * width / 6 for a, m, b in zip(at, between, at[1:], strict=False)), Fraction(0)
    )
    integral = sum(heights) * width
    assert score(FIRST, heights).value == pytest.approx(float(integral**2 / max(at)))
    assert score(SECOND, heights).value == pytest.approx(float(squares / (integral**2 * max(at))))


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=20).filter(any))
def test_values_keep_within_what_is_proven(heights: list[float]) -> None:
    assert 0 < score(FIRST, heights).value < 1 / 1.28  # C1 is at least 1.28
    assert 0 < score(SECOND, heights).value <= 1 + 1e-12


@pytest.mark.parametrize(
    ("heights", "says"),
    [
        ([], f"heights must have 1 to {MOST_STEPS} entries, not 0"),
        ([1] * (MOST_STEPS + 1), f"heights must have 1 to {MOST_STEPS} entries, not {MOST_STEPS + 1}"),
        ([0, 0.0], "all heights are 0"),
        ([1, -1e-8], "heights[1] is -1e-08; no height may be below 0"),
        ([1, None], "heights[1] must be a number, not null"),
        ({"f": 1}, "heights must be a list, not an object"),
    ],
)
def test_wrong_heights_are_refused(heights: object, says: str) -> None:
    for problem in (FIRST, SECOND):
        assert refusal(problem, heights).startswith(says)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=12).filter(sum))
def test_the_third_counts_the_size_of_what_is_below_0(heights: list[int]) -> None:
    n = len(heights)
    inner = [
        sum(heights[i] * heights[k - i] for i in range(max(0, k - n + 1), min(k, n - 1) + 1)) for k in range(2 * n - 1)
    ]
    expected = Fraction(sum(heights) ** 2, 2 * n * max(map(abs, inner)))
    assert score(THIRD, heights).value == pytest.approx(float(expected))
    assert score(THIRD, [-3 * height for height in heights]).value == pytest.approx(float(expected))


def test_the_third_needs_an_integral() -> None:
    assert score(THIRD, [1, 1, 1]).value == pytest.approx(0.5)
    assert refusal(THIRD, [1, -1]).startswith("the heights add up to 0 of the largest")
    assert refusal(THIRD, [0, 0]) == "all heights are 0"
