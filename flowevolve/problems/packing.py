"""Packing circles without overlap into a square or a rectangle, with the largest sum of radii."""

from __future__ import annotations

import math
from itertools import combinations

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import vectors
from flowevolve.problems.limits import LimitsSetting
from flowevolve.programs import Case, Verdict, WrongResultError

Circle = tuple[float, float, float]
"""The coordinates of the centre, and the radius."""


class CirclePacking(ShippedProblem):
    """``n`` circles in the unit square. Value: the sum of their radii.

    This is AlphaEvolve's B.12. The best known values are 2.63598 for 26 circles and 2.93957 for 32 (CodeEvolve, tables
    1 and 3). Hardly anything can be gained with 26 circles any more: prefer 32.
    """

    entry = "pack"
    seed_name = "circle_packing"
    reference_source = "CodeEvolve, tables 1 and 3"

    def __init__(self, n: int, reference: float | None = None, limits: LimitsSetting = "quick") -> None:
        self.name = f"circle_packing_{n}"
        super().__init__(limits)
        self.reference = reference
        self.cases = [Case("one", {"n": n})]
        self.n = n
        self.statement = (
            f"Place {n} circles in the unit square so that the sum of their radii is as large as possible.\n\n"
            f"Write `pack(n)`, called once with n = {n}. It returns a list of {n} circles, each [x, y, radius]. Every "
            "circle must lie in the square from (0, 0) to (1, 1), touching its border at most, have a radius above 0, "
            f"and overlap no other; {self.limits.tolerance:g} is allowed for rounding.\n\n"
            f"The score is the sum of the radii. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        circles = read_circles(result, self.n)
        for place, (x, y, radius) in enumerate(circles):
            reach = radius - min(x, 1 - x, y, 1 - y)
            if reach > self.limits.tolerance:
                raise WrongResultError(f"circle {place} reaches {reach:.3g} out of the square; {shown((x, y, radius))}")
        check_apart(circles, self.limits.tolerance)
        total = math.fsum(radius for _, _, radius in circles)
        return Verdict(total, describe(circles, total))


class RectanglePacking(ShippedProblem):
    """``n`` circles in a rectangle of perimeter 4, whose shape is free. Value: the sum of their radii.

    This is AlphaEvolve's B.13. The best known value for 21 circles is 2.36583 (AlphaEvolve and CodeEvolve, table 1).
    """

    entry = "pack"
    seed_name = "rectangle_packing"
    reference_source = "AlphaEvolve B.13; CodeEvolve, table 1"

    def __init__(self, n: int, reference: float | None = None, limits: LimitsSetting = "quick") -> None:
        self.name = f"circle_packing_rectangle_{n}"
        super().__init__(limits)
        self.reference = reference
        self.cases = [Case("one", {"n": n})]
        self.n = n
        self.statement = (
            f"Place {n} circles in a rectangle of perimeter 4 so that the sum of their radii is as large as possible. "
            "The shape of the rectangle is yours to choose.\n\n"
            f"Write `pack(n)`, called once with n = {n}. It returns a list of {n} circles, each [x, y, radius]. The "
            "rectangle is the smallest one, upright, that holds them all, wherever it lies: its width and height must "
            "add up to 2 at most. Every circle must have a radius above 0 and overlap no other; "
            f"{self.limits.tolerance:g} is allowed for rounding.\n\n"
            f"The score is the sum of the radii. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        circles = read_circles(result, self.n)
        width = max(x + r for x, _, r in circles) - min(x - r for x, _, r in circles)
        height = max(y + r for _, y, r in circles) - min(y - r for _, y, r in circles)
        if width + height > 2 + self.limits.tolerance:
            raise WrongResultError(
                f"the circles need a rectangle of {width:.6g} by {height:.6g}, which add up to {width + height:.9g}; "
                "2 is allowed"
            )
        check_apart(circles, self.limits.tolerance)
        total = math.fsum(radius for _, _, radius in circles)
        return Verdict(total, f"The rectangle is {width:.6g} by {height:.6g}. {describe(circles, total)}")


def read_circles(result: JSON, n: int) -> list[Circle]:
    """Read ``n`` circles with radii above 0, none of them far away.

    Raises:
        WrongResultError: naming the first circle that is wrong.
    """
    circles = [(x, y, radius) for x, y, radius in vectors(result, "circles", n, 3)]
    for place, (x, y, radius) in enumerate(circles):
        if radius <= 0:
            raise WrongResultError(f"circle {place} must have a radius above 0; {shown((x, y, radius))}")
        if max(abs(x), abs(y), radius) > 10:
            raise WrongResultError(f"circle {place} is far off; {shown((x, y, radius))}")
    return circles


def check_apart(circles: list[Circle], tolerance: float) -> None:
    """Check that no two circles overlap by more than the tolerance.

    Raises:
        WrongResultError: naming the pair that overlaps most.
    """
    overlaps = [(a[2] + b[2] - math.dist(a[:2], b[:2]), i, j) for (i, a), (j, b) in pairs(circles)]
    depth, i, j = max(overlaps, default=(0.0, 0, 0))
    if depth > tolerance:
        raise WrongResultError(
            f"circles {i} and {j} overlap by {depth:.3g}: {shown(circles[i])} and {shown(circles[j])}; "
            "shrink or move them, radii can also be computed from the centres"
        )


def pairs(circles: list[Circle]) -> combinations[tuple[tuple[int, Circle], tuple[int, Circle]]]:
    return combinations(enumerate(circles), 2)


def describe(circles: list[Circle], total: float) -> str:
    """Describe a packing by what is useful for improving it."""
    radii = sorted(radius for _, _, radius in circles)
    gaps = [math.dist(a[:2], b[:2]) - a[2] - b[2] for (_, a), (_, b) in pairs(circles)]
    touching = sum(gap < 1e-6 for gap in gaps)
    return (
        f"Sum of radii {total:.8f}. Radii from {radii[0]:.4f} to {radii[-1]:.4f}, median {radii[len(radii) // 2]:.4f}; "
        f"{touching} pairs touch."
    )


def shown(circle: Circle) -> str:
    x, y, radius = circle
    return f"centre ({x:.6g}, {y:.6g}), radius {radius:.6g}"
