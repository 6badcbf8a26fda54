"""Heilbronn's problem: points no three of which make a small triangle, in a triangle or in a region of any shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import vectors
from flowevolve.problems.limits import LimitsSetting
from flowevolve.programs import Case, Verdict, WrongResultError

FARTHEST = 1e6
"""The largest coordinate that is allowed where the region is free; only ratios of areas count."""
HEIGHT = math.sqrt(3) / 2
"""The height of the triangle with sides of length 1."""

Point = tuple[float, float]


class HeilbronnTriangle(ShippedProblem):
    """``n`` points in an equilateral triangle. Value: the area of their smallest triangle over that of the whole.

    This is AlphaEvolve's B.9. For 11 points its value is 0.0365, after 0.036; the reference is the value of its
    published points. A point may lie outside by the tolerance.
    """

    entry = "place"
    reference_source = "AlphaEvolve B.9"

    def __init__(self, n: int, reference: float | None = None, limits: LimitsSetting = "quick") -> None:
        self.name = f"heilbronn_triangle_{n}"
        super().__init__(limits)
        self.reference = reference
        self.seed_name = "heilbronn_triangle"
        self.cases = [Case("one", {"n": n})]
        self.n = n
        self.statement = (
            f"Place {n} points in the triangle with the corners (0, 0), (1, 0) and (1/2, sqrt(3)/2), so that the "
            "smallest of the triangles that any three of them make is as large as possible.\n\n"
            f"Write `place(n)`, called once with n = {n}. It returns a list of {n} points, each [x, y], in the "
            f"triangle or on its border; {self.limits.tolerance:g} beyond is allowed for rounding.\n\n"
            f"The score is the smallest area over that of the whole triangle. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        points = [(x, y) for x, y in vectors(result, "points", self.n, 2)]
        for place, (x, y) in enumerate(points):
            beyond = max(-y, math.sqrt(3) * (x - 1) + y, y - math.sqrt(3) * x)
            if beyond > self.limits.tolerance:
                raise WrongResultError(f"point {place}, ({x:.6g}, {y:.6g}), is outside of the triangle")
        return least_triangle(points, HEIGHT)


class HeilbronnConvex(ShippedProblem):
    """``n`` points anywhere. Value: the area of their smallest triangle over that of their convex hull.

    This is AlphaEvolve's B.10: 0.0309 for 13 points and 0.0278 for 14, after 0.0306 and 0.0277; the references are the
    values of its published points.
    """

    entry = "place"
    reference_source = "AlphaEvolve B.10"

    def __init__(self, n: int, reference: float | None = None, limits: LimitsSetting = "quick") -> None:
        self.name = f"heilbronn_convex_{n}"
        super().__init__(limits)
        self.reference = reference
        self.seed_name = "heilbronn_convex"
        self.cases = [Case("one", {"n": n})]
        self.n = n
        self.statement = (
            f"Place {n} points in the plane so that the smallest of the triangles that any three of them make is as "
            "large as possible against their convex hull.\n\n"
            f"Write `place(n)`, called once with n = {n}. It returns a list of {n} points, each [x, y], with "
            f"coordinates between -{FARTHEST:g} and {FARTHEST:g}.\n\n"
            f"The score is the smallest area over that of the convex hull of all points. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        points = [(x, y) for x, y in vectors(result, "points", self.n, 2)]
        for place, point in enumerate(points):
            if max(map(abs, point)) > FARTHEST:
                raise WrongResultError(f"point {place} has a coordinate beyond {FARTHEST:g}")
        exact = in_whole_numbers(points)
        return least_triangle(exact, doubled_area(hull(exact)))


def in_whole_numbers(points: Sequence[Point]) -> list[Point]:
    """The points times the least number that makes their coordinates integers, with which areas are exact.

    With floats, rounding would decide the value of points near each other and far from the origin, or nearly on a line.
    """
    exact = [(Fraction(x), Fraction(y)) for x, y in points]
    common = math.lcm(*(part.denominator for point in exact for part in point))
    return [(int(x * common), int(y * common)) for x, y in exact]


def least_triangle(points: Sequence[Point], doubled: float) -> Verdict:
    """The verdict on points in a region; ``doubled`` is twice its area.

    Raises:
        WrongResultError: if three points lie on a line, up to rounding.
    """
    sizes = sorted((abs(turn(*three)), places) for three, places in _threes(points))
    least, (i, j, k) = sizes[0]
    if doubled <= 0 or least / doubled <= 1e-12:
        raise WrongResultError(f"points {i}, {j} and {k} lie on a line, or two of them are the same")
    shares = [size / doubled for size, _ in sizes]
    near = sum(share < shares[0] * (1 + 1e-6) for share in shares)
    return Verdict(
        shares[0],
        f"Points {i}, {j} and {k} make the smallest triangle, {shares[0]:.8f} of the whole ({near} are as small); "
        f"the median is {shares[len(shares) // 2]:.6f}.",
    )


def _threes(points: Sequence[Point]) -> list[tuple[tuple[Point, Point, Point], tuple[int, int, int]]]:
    return [((points[i], points[j], points[k]), (i, j, k)) for i, j, k in combinations(range(len(points)), 3)]


def turn(a: Point, b: Point, c: Point) -> float:
    """Twice the signed area of a triangle, above 0 if its corners are in counterclockwise order."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def hull(points: Sequence[Point]) -> list[Point]:
    """The corners of the convex hull, in counterclockwise order."""
    ordered = sorted(set(points))
    halves = []
    for way in (ordered, ordered[::-1]):
        half: list[Point] = []
        for point in way:
            while len(half) > 1 and turn(half[-2], half[-1], point) <= 0:
                half.pop()
            half.append(point)
        halves.append(half[:-1])
    return halves[0] + halves[1]


def doubled_area(corners: Sequence[Point]) -> float:
    """Twice the area of a polygon whose corners are in counterclockwise order."""
    return sum(turn(corners[0], a, b) for a, b in pairwise(corners[1:]))
