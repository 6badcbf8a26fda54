"""Kissing numbers that are known, and points that are nearly right."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from flowevolve.problems.kissing import LARGEST, KissingNumber
from tests.support.problem_checks import refusal, score


def two_of(dimensions: int, size: int = 1) -> list[list[int]]:
    """All points with two coordinates that are ``size`` or minus that, and 0 elsewhere."""
    found = []
    for i, j in combinations(range(dimensions), 2):
        for one, other in product((size, -size), repeat=2):
            point = [0] * dimensions
            point[i], point[j] = one, other
            found.append(point)
    return found


@pytest.mark.parametrize(("dimensions", "count"), [(3, 12), (4, 24), (5, 40), (11, 220)])
def test_roots_of_lattices(dimensions: int, count: int) -> None:
    assert score(KissingNumber(dimensions), two_of(dimensions)).value == count


def test_240_balls_in_eight_dimensions() -> None:
    halves = [list(signs) for signs in product((1, -1), repeat=8) if signs.count(-1) % 2 == 0]
    points = two_of(8, 2) + halves
    assert score(KissingNumber(8), points).value == 240
    assert "too near" in refusal(KissingNumber(8), [*points, [2, 2, 2, 1, 1, 1, 1, 0]])


def test_lengths_may_differ_if_all_are_far_enough_apart() -> None:
    assert score(KissingNumber(2), [[10, 0], [0, 9], [-9, 0]]).value == 3


def test_the_check_is_exact() -> None:
    """Six points on a circle of whole numbers are never exactly far enough apart, however many digits they have."""
    side, height = 10**14, 86602540378443  # half of it, and half of it times the root of 3, cut off
    hexagon = [
        [side, 0],
        [side // 2, height],
        [-side // 2, height],
        [-side, 0],
        [-side // 2, -height],
        [side // 2, -height],
    ]
    assert "too near" in refusal(KissingNumber(2), hexagon)


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([], "points must have 1 to 2000 entries, not 0"),
        ([[1, 0], [0, 0]], "point 1 is the origin"),
        ([[1, 0], [1, 0]], "points 0 and 1 are too near: their distance squared is 0 of"),
        ([[1, 0, 0]], "points[0] must have 2 entries, not 3"),
        ([[1.0, 0]], "points[0] must have whole numbers, not the number 1.0"),
        ([[True, 0]], "points[0] must have whole numbers, not a truth value"),
        ([[LARGEST + 1, 0]], "points[0] has a coordinate beyond"),
    ],
)
def test_wrong_points_are_refused(points: object, says: str) -> None:
    assert refusal(KissingNumber(2), points).startswith(says)
