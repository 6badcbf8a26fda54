"""Heilbronn's problem: arrangements whose smallest triangles are known."""

from __future__ import annotations

import math

import pytest

from flowevolve.problems.heilbronn import HeilbronnConvex, HeilbronnTriangle, doubled_area, hull
from tests.support.problem_checks import refusal, score

TOP = math.sqrt(3) / 2


def polygon(n: int) -> list[list[float]]:
    return [[math.cos(2 * math.pi * k / n), math.sin(2 * math.pi * k / n)] for k in range(n)]


def test_the_corners_make_the_whole_triangle() -> None:
    assert score(HeilbronnTriangle(3), [[0, 0], [1, 0], [0.5, TOP]]).value == pytest.approx(1)
    inner = [[0, 0], [1, 0], [0.5, TOP], [0.5, TOP / 3]]
    assert score(HeilbronnTriangle(4), inner).value == pytest.approx(1 / 3)


@pytest.mark.parametrize(("n", "value"), [(4, 1 / 2), (5, 1 / (2 + (1 + math.sqrt(5)) / 2)), (6, 1 / 6)])
def test_regular_polygons(n: int, value: float) -> None:
    assert score(HeilbronnConvex(n), polygon(n)).value == pytest.approx(value)
    moved = [[5 + 3 * x + y, 2 * y - 7] for x, y in polygon(n)]  # ratios of areas stay
    assert score(HeilbronnConvex(n), moved).value == pytest.approx(value)


@pytest.mark.parametrize("scale", [1.0, 0.02])
@pytest.mark.parametrize("place", [(4e5, 9.9e5), (-987654.3, 456789.1), (9.9e5, -9.9e5)])
def test_a_value_is_no_better_for_where_points_are(place: tuple[float, float], scale: float) -> None:
    there = [[place[0] + scale * x, place[1] + scale * y] for x, y in polygon(7)]
    home = [
        [x - place[0], y - place[1]] for x, y in there
    ]  # the same points: floats so near each other subtract exactly
    assert score(HeilbronnConvex(7), there).value == pytest.approx(score(HeilbronnConvex(7), home).value, rel=1e-9)


@pytest.mark.parametrize("width", [2.0**-12, 2.0**-18])
def test_a_value_is_no_better_for_points_nearly_on_a_line(width: float) -> None:
    flat = [[round(2.0**18 * x) / 2, round(2.0**10 * y) * 2.0**-10] for x, y in polygon(7)]
    tilted = [[x, x + width * y] for x, y in flat]  # exact, and ratios of areas stay
    assert score(HeilbronnConvex(7), tilted).value == pytest.approx(score(HeilbronnConvex(7), flat).value, rel=1e-9)


def test_a_value_is_no_better_for_numbers_of_any_size() -> None:
    with_small_ones = [[1e6 * x, 1e6 * y] for x, y in [(0, 0), (1, 1e-320), (1, 1), (1e-320, 1)]]
    assert score(HeilbronnConvex(4), with_small_ones).value == pytest.approx(1 / 2)
    assert score(HeilbronnConvex(3), [[0, 0], [5e-324, 0], [0, 5e-324]]).value == 1


def test_a_hull_leaves_out_what_is_inside_or_on_its_sides() -> None:
    square = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]
    corners = hull([*square, (1.0, 1.0), (1.0, 0.0), (2.0, 2.0)])
    assert sorted(corners) == sorted(square)
    assert doubled_area(corners) == 8


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([[0, 0], [1, 0]], "points must have 3 entries, not 2"),
        ([[0, 0], [1, 0], [0.5, -1e-3]], "point 2, (0.5, -0.001), is outside of the triangle"),
        ([[0, 0], [1, 0], [0.9, 0.5]], "point 2, (0.9, 0.5), is outside"),
        ([[0, 0], [1, 0], [0.1, 0.5]], "point 2, (0.1, 0.5), is outside"),
        ([[0, 0], [1, 0], [0.5, 0]], "points 0, 1 and 2 lie on a line"),
        ([[0, 0], [0, 0], [0.5, 0.5]], "points 0, 1 and 2 lie on a line, or two of them are the same"),
    ],
)
def test_wrong_points_are_refused(points: object, says: str) -> None:
    assert refusal(HeilbronnTriangle(3), points).startswith(says)


def test_points_all_on_one_line_or_far_away_are_refused() -> None:
    assert "lie on a line" in refusal(HeilbronnConvex(3), [[0, 0], [1, 1], [2, 2]])
    assert "point 1 has a coordinate beyond" in refusal(HeilbronnConvex(3), [[0, 0], [1e7, 1], [2, 2]])
