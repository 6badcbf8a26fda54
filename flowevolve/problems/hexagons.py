"""Packing unit hexagons into a hexagon that is as small as possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import vectors
from flowevolve.problems.limits import LimitsSetting
from flowevolve.programs import Case, Verdict, WrongResultError

FARTHEST = 100.0
"""The largest coordinate that is allowed. No good arrangement reaches as far."""
APOTHEM = math.sqrt(3) / 2
"""The distance from the centre of a unit hexagon to its sides."""

Vector = tuple[float, float]


class HexagonPacking(ShippedProblem):
    """``n`` regular hexagons of side 1, rotated freely, in a regular hexagon. Value: 1 over the side of that hexagon.

    This is AlphaEvolve's B.7, which gives the side. The best known sides are 3.93009 for 11 hexagons and 3.94191 for 12
    (AlphaEvolve, in CodeEvolve's table 1), and the references are their inverses.
    """

    entry = "arrange"
    seed_name = "hexagon_packing"
    reference_source = "1 over the side; AlphaEvolve B.7, in CodeEvolve's table 1"

    def __init__(self, n: int, reference: float | None = None, limits: LimitsSetting = "quick") -> None:
        self.name = f"hexagon_packing_{n}"
        super().__init__(limits)
        self.reference = reference
        self.cases = [Case("one", {"n": n})]
        self.n = n
        self.statement = (
            f"Arrange {n} regular hexagons of side 1 without overlap so that a regular hexagon as small as possible "
            "holds them all.\n\n"
            f"Write `arrange(n)`, called once with n = {n}. It returns a list of {n} hexagons, each [x, y, angle]: its "
            "middle, and by how many degrees it is turned against one that has a corner straight to the right of its "
            "middle. The outer hexagon has its middle at (0, 0) and a corner straight to the right of it; its side is "
            "the smallest that holds all, so move and turn the arrangement as a whole to fit. Sides may touch; "
            f"{self.limits.tolerance:g} of overlap is allowed for rounding.\n\n"
            f"The score is 1 over the side of the outer hexagon. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        hexagons = [(x, y, angle) for x, y, angle in vectors(result, "hexagons", self.n, 3)]
        for place, (x, y, angle) in enumerate(hexagons):
            if max(abs(x), abs(y)) > FARTHEST or abs(angle) > 1e6:
                raise WrongResultError(f"hexagon {place} is far off: middle ({x:.6g}, {y:.6g}), angle {angle:.6g}")
        for i, j in combinations(range(self.n), 2):
            depth = overlap(hexagons[i], hexagons[j])
            if depth > self.limits.tolerance:
                raise WrongResultError(
                    f"hexagons {i} and {j} overlap by {depth:.3g}: {shown(hexagons[i])} and {shown(hexagons[j])}"
                )
        needs = [side_for(hexagon) for hexagon in hexagons]
        side = max(needs)
        outermost = [place for place, need in enumerate(needs) if need > side - 1e-6]
        return Verdict(
            1 / side,
            f"The outer hexagon has side {side:.8f}; hexagons {', '.join(map(str, outermost))} reach its border.",
            metrics={"side": side},
        )


def corners(hexagon: tuple[float, float, float]) -> list[Vector]:
    x, y, angle = hexagon
    turns = [math.radians(angle + 60 * k) for k in range(6)]
    return [(x + math.cos(turn), y + math.sin(turn)) for turn in turns]


def normals(angle: float) -> list[Vector]:
    """The unit normals of a hexagon's sides, one for each pair of parallel sides."""
    turns = [math.radians(angle + 30 + 60 * k) for k in range(3)]
    return [(math.cos(turn), math.sin(turn)) for turn in turns]


def overlap(a: tuple[float, float, float], b: tuple[float, float, float]) -> float:
    """How deep two hexagons overlap; 0 or below if they don't.

    By the separating axis theorem, two convex polygons are disjoint if and only if their projections on the normal of
    one of their sides are.
    """
    if math.dist(a[:2], b[:2]) >= 2:
        return 0.0
    first, second = corners(a), corners(b)
    return min(shared(first, second, axis) for axis in normals(a[2]) + normals(b[2]))


def shared(first: Sequence[Vector], second: Sequence[Vector], axis: Vector) -> float:
    """The length that the projections of two polygons on an axis have in common, or minus the gap between them."""
    x, y = axis
    one = [x * point[0] + y * point[1] for point in first]
    two = [x * point[0] + y * point[1] for point in second]
    return min(max(one) - min(two), max(two) - min(one))


def side_for(hexagon: tuple[float, float, float]) -> float:
    """The side that the outer hexagon must have to hold this one."""
    return max(abs(x * across + y * up) for x, y in corners(hexagon) for across, up in normals(0.0)) / APOTHEM


def shown(hexagon: tuple[float, float, float]) -> str:
    x, y, angle = hexagon
    return f"middle ({x:.6g}, {y:.6g}), angle {angle:.6g}"
