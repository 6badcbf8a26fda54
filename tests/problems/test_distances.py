"""Points whose distances are as equal as possible."""

from __future__ import annotations

import math

import pytest

from flowevolve.problems.distances import MinMaxDistance
from tests.support.problem_checks import refusal, score


def test_known_figures_have_their_values() -> None:
    square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    assert score(MinMaxDistance(4, 2), square).value == pytest.approx(1 / 2)
    assert score(MinMaxDistance(4, 2), [[1e5 * x, 1e5 * y] for x, y in square]).value == pytest.approx(1 / 2)
    tetrahedron = [[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    assert score(MinMaxDistance(4, 3), tetrahedron).value == pytest.approx(1)
    pentagon = [[math.cos(math.radians(72 * k)), math.sin(math.radians(72 * k))] for k in range(5)]
    golden = (1 + math.sqrt(5)) / 2
    assert score(MinMaxDistance(5, 2), pentagon).metrics["squared_ratio"] == pytest.approx(golden**2)


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([[0, 0]], "points must have 2 entries, not 1"),
        ([[0, 0], [0, 0, 0]], "points[1] must have 2 entries, not 3"),
        ([[0, 0], [0, 0]], "points 0 and 1 are the same"),
        ([[0, 0], [0, 1e7]], "point 1 has a coordinate beyond"),
    ],
)
def test_wrong_points_are_refused(points: object, says: str) -> None:
    assert refusal(MinMaxDistance(2, 2), points).startswith(says)


def test_points_that_nearly_fall_together_are_the_same() -> None:
    assert refusal(MinMaxDistance(3, 2), [[0, 0], [1, 0], [1, 1e-9]]).startswith("points 1 and 2 are the same")
