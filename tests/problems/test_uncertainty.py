"""The uncertainty inequality: published coefficients have their published bound, and zeros are found exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st

from flowevolve.problems.uncertainty import (
    UncertaintyInequality,
    hermite_in_squares,
    in_squares,
    largest_root,
    primitive,
)
from tests.support.problem_checks import refusal, score

PROBLEM = UncertaintyInequality()


def test_published_coefficients_have_the_published_bound() -> None:
    """AlphaEvolve's, as printed in its appendix B.4: C4 is at most 0.3521."""
    assert score(PROBLEM, [0.32925, -0.01159, -8.9216e-05]).metrics["bound"] == pytest.approx(0.3521, abs=1e-4)


def test_one_coefficient_by_hand() -> None:
    """P = H0 - H4 / 12 = 4 x^2 - 4/3 x^4, which is 0 at x^2 = 3; neither factor nor sign matter."""
    assert in_squares([1.0]) in ([3, -1], [-3, 1])
    for factor in (1.0, -2.5, 1e-300):
        assert score(PROBLEM, [factor]).value == pytest.approx(2 * math.pi / 3)


def test_hermite_polynomials() -> None:
    assert hermite_in_squares(0) == [1]
    assert hermite_in_squares(4) == [12, -48, 16]
    assert hermite_in_squares(8) == [1680, -13440, 13440, -3584, 256]


def product(roots: list[tuple[int, int]]) -> list[int]:
    """The polynomial with these roots, each a fraction."""
    result = [1]
    for up, down in roots:
        result = [down * a - up * b for a, b in zip([0, *result], [*result, 0], strict=True)]
    return result


@example([(1, 1), (1, 2), (2, 4)], 1)  # a root that is met twice while the largest one is looked for
@example([(0, 1), (0, 1), (1, 1)], 1)
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 5)), min_size=1, max_size=6), st.sampled_from([1, -1]))
def test_the_largest_root_is_found_whatever_its_multiplicity(roots: list[tuple[int, int]], sign: int) -> None:
    largest = max(Fraction(*root) for root in roots)
    found = largest_root(primitive([sign * part for part in product(roots)]))
    if largest <= 0:
        assert found is None
    else:
        assert found is not None
        assert 0 <= found - largest <= largest / 2**49


def test_where_p_only_touches_zero_is_a_zero() -> None:
    found = largest_root(product([(1, 1), (7, 2), (7, 2)]))
    assert found is not None
    assert float(found) == pytest.approx(3.5)
    assert largest_root([1, 0, 1]) is None
    assert largest_root([]) is None


@pytest.mark.parametrize(
    ("coefficients", "says"),
    [
        ([], "coefficients must have 1 to 12 entries, not 0"),
        ([1.0] * 13, "coefficients must have 1 to 12 entries, not 13"),
        ([0, 0.0], "P has no zero above 0"),
        (["1"], "coefficients[0] must be a number, not a text"),
        ([float("nan")], "coefficients[0] must be a finite number"),
    ],
)
def test_wrong_coefficients_are_refused(coefficients: object, says: str) -> None:
    assert refusal(PROBLEM, coefficients).startswith(says)
