"""Sums and differences of sets, counted in another way."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from flowevolve.problems.sumsets import LARGEST, MOST, SumsAndDifferences
from tests.support.problem_checks import refusal, score

PROBLEM = SumsAndDifferences()


def test_what_can_be_counted_by_hand() -> None:
    assert score(PROBLEM, [1, 0]).value == 1  # -1, 0, 1 and 0, 1, 2
    assert score(PROBLEM, [0, 1, 3]).value == pytest.approx(1 + math.log(7 / 6) / math.log(7))


@given(st.sets(st.integers(1, 60), min_size=1, max_size=12))
def test_all_pairs_are_counted(rest: set[int]) -> None:
    numbers = [0, *rest]
    metrics = score(PROBLEM, numbers).metrics
    assert metrics["sums"] == len({u + v for u in numbers for v in numbers})
    assert metrics["differences"] == len({u - v for u in numbers for v in numbers})


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ([0], f"numbers must have 2 to {MOST} entries, not 1"),
        ([*range(MOST + 1)], f"numbers must have 2 to {MOST} entries, not {MOST + 1}"),
        ([0, 1, 1], "1 is there twice"),
        ([1, 2], "0 is missing"),
        ([0, -1], "numbers[1] must be from 0 to"),
        ([0, LARGEST + 1], "numbers[1] must be from 0 to"),
        ([0, 1.0], "numbers[1] must be a whole number"),
    ],
)
def test_wrong_sets_are_refused(numbers: object, says: str) -> None:
    assert refusal(PROBLEM, numbers).startswith(says)
