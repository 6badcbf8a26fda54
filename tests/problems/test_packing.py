"""Circles and hexagons."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from flowevolve.problems.hexagons import HexagonPacking, corners, overlap
from flowevolve.problems.packing import CirclePacking, RectanglePacking
from tests.problems.conftest import Court
from tests.support.problem_checks import refusal, score

GRID = [[0.1 + 0.2 * i, 0.1 + 0.2 * j, 0.1] for i in range(5) for j in range(5)]
HOLE = 0.1 * (math.sqrt(2) - 1)
"""The radius that fits between four circles of a grid."""


def test_circles_are_worth_the_sum_of_their_radii() -> None:
    in_corners = 1 / (2 + math.sqrt(2))  # two equal ones on a diagonal
    assert score(CirclePacking(1), [[0.5, 0.5, 0.5]]).value == 0.5
    far = 1 - in_corners
    pair = [[in_corners, in_corners, in_corners], [far, far, in_corners]]
    assert score(CirclePacking(2), pair).value == pytest.approx(2 - math.sqrt(2))
    assert score(CirclePacking(26), [*GRID, [0.2, 0.2, HOLE]]).value == pytest.approx(2.5 + HOLE)


def test_rounding_is_forgiven_and_no_more() -> None:
    assert score(CirclePacking(26), [*GRID, [0.2, 0.2, HOLE + 5e-10]]).failure is None
    assert "overlap by" in refusal(CirclePacking(26), [*GRID, [0.2, 0.2, HOLE + 2e-9]])


@pytest.mark.parametrize(
    ("circles", "says"),
    [
        ([[0.5, 0.5, 0.5]], "circles must have 2 entries, not 1"),
        ([[0.5, 0.5], [0.5, 0.5]], "circles[0] must have 3 entries, not 2"),
        ([[0.2, 0.2, 0.1], [0.8, 0.8, "r"]], "circles[1][2] must be a number"),
        ([[0.2, 0.2, 0.1], [0.8, 0.8, 0]], "circle 1 must have a radius above 0"),
        ([[0.2, 0.2, 0.1], [0.8, 0.8, -0.1]], "circle 1 must have a radius above 0"),
        ([[0.2, 0.2, 0.1], [0.8, 0.8, 0.3]], "circle 1 reaches 0.1 out of the square"),
        ([[0.2, 0.2, 0.1], [1e300, 0.8, 0.3]], "circle 1 is far off"),
        ([[0.4, 0.5, 0.2], [0.6, 0.5, 0.2]], "circles 0 and 1 overlap by 0.2"),
        ([[0.5, 0.5, 0.3], [0.5, 0.5, 0.1]], "circles 0 and 1 overlap by 0.4"),
    ],
)
def test_wrong_circles_are_refused(circles: object, says: str) -> None:
    assert refusal(CirclePacking(2), circles).startswith(says)


def test_a_rectangle_may_lie_anywhere_but_has_perimeter_4() -> None:
    third = 1 / 3
    fits = [[5.0, 1.0, third], [5.0 + 2 * third, 1.0, third]]
    assert score(RectanglePacking(2), fits).value == pytest.approx(2 / 3)
    assert "1.34 by 0.67, which add up to 2.01" in refusal(RectanglePacking(2), [[5.0, 1.0, 0.335], [5.67, 1.0, 0.335]])
    assert "overlap" in refusal(RectanglePacking(2), [[0.3, 0.3, 0.3], [0.4, 0.3, 0.3]])
    assert "far off" in refusal(RectanglePacking(2), [[0.3, 0.3, 0.3], [11.0, 0.3, 0.3]])


def test_radii_of_a_program_are_not_believed_beyond_the_checks(court: Court) -> None:
    verdict = court.judge(CirclePacking(26), "def pack(n):\n    return [[0.5, 0.5, 0.5]] * n\n")
    assert verdict.value == 0.0
    assert verdict.failure is not None
    assert "overlap" in verdict.failure


def honeycomb() -> list[list[float]]:
    """One hexagon and the six around it."""
    turns = [math.radians(30 + 60 * k) for k in range(6)]
    return [[0.0, 0.0, 0.0], *([math.sqrt(3) * math.cos(t), math.sqrt(3) * math.sin(t), 60.0] for t in turns)]


def test_a_hexagon_is_as_large_as_what_it_holds() -> None:
    assert score(HexagonPacking(1), [[0, 0, 0]]).value == pytest.approx(1)
    assert score(HexagonPacking(1), [[0, 0, 30]]).metrics["side"] == pytest.approx(2 / math.sqrt(3))
    assert score(HexagonPacking(1), [[0, 1, 0]]).metrics["side"] == pytest.approx(1 + 2 / math.sqrt(3))
    assert score(HexagonPacking(7), honeycomb()).metrics["side"] == pytest.approx(3)


@pytest.mark.parametrize(
    ("hexagons", "says"),
    [
        ([[0, 0, 0]], "hexagons must have 2 entries, not 1"),
        ([[0, 0, 0], [0, math.sqrt(3) - 2e-9, 0]], "hexagons 0 and 1 overlap by 2e-09"),
        ([[0, 0, 0], [1.9, 0, 0]], "hexagons 0 and 1 overlap by"),
        ([[0, 0, 0], [0, 0, 0]], "hexagons 0 and 1 overlap by 1.73"),
        ([[0, 0, 0], [1e200, 0, 0]], "hexagon 1 is far off"),
        ([[0, 0, 0], [3, 0, 1e7]], "hexagon 1 is far off"),
    ],
)
def test_wrong_hexagons_are_refused(hexagons: object, says: str) -> None:
    assert refusal(HexagonPacking(2), hexagons).startswith(says)


def test_hexagons_may_touch() -> None:
    assert score(HexagonPacking(2), [[0, 0, 0], [0, math.sqrt(3), 0]]).failure is None
    assert score(HexagonPacking(2), [[0, 0, 0], [2, 0, 0]]).failure is None


hexagons = st.tuples(st.floats(-2, 2), st.floats(-2, 2), st.floats(0, 60))


@given(a=hexagons, b=hexagons)
def test_overlap_is_what_points_tell(a: tuple[float, float, float], b: tuple[float, float, float]) -> None:
    """Overlap agrees with another test: whether points on the sides of one hexagon lie inside of the other."""
    depth = overlap(a, b)
    assert depth == pytest.approx(overlap(b, a), abs=1e-12)
    inside = max(_depth_inside(point, b) for point in [*_border(a), a[:2]])
    if inside > 1e-9:
        assert depth > 0
    if depth > 0.2:
        assert inside > 0 or max(_depth_inside(point, a) for point in [*_border(b), b[:2]]) > 0


def _border(hexagon: tuple[float, float, float]) -> list[tuple[float, float]]:
    points = corners(hexagon)
    return [
        (x + (x2 - x) * k / 30, y + (y2 - y) * k / 30)
        for (x, y), (x2, y2) in zip(points, [*points[1:], points[0]], strict=True)
        for k in range(30)
    ]


def _depth_inside(point: tuple[float, ...], hexagon: tuple[float, float, float]) -> float:
    """The distance to the nearest side, negative outside."""
    points = corners(hexagon)
    return min(
        (x2 - x) * (point[1] - y) - (y2 - y) * (point[0] - x)
        for (x, y), (x2, y2) in zip(points, [*points[1:], points[0]], strict=True)
    )
