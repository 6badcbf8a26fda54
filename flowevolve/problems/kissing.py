"""Kissing numbers: how many balls can touch one of the same size."""

from __future__ import annotations

from itertools import combinations
from operator import mul

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import kind, list_of
from flowevolve.problems.limits import LimitsSetting
from flowevolve.programs import Case, Verdict, WrongResultError

LARGEST = 10**15
"""The largest coordinate that is allowed. Arrangements that don't come from a lattice need many digits."""
MOST = 2000
"""The most points that are allowed, far above all bounds in 11 dimensions: at most 868 balls can touch one there."""


class KissingNumber(ShippedProblem):
    """Points in ``dimensions`` dimensions, no two nearer than the farthest is to the origin. Value: their number.

    This is AlphaEvolve's B.11. Scaled to the same length, such points are the centres of balls that touch an equal ball
    around the origin without overlapping each other, as its lemma shows. Coordinates are whole numbers, so that the
    check is exact. In 11 dimensions AlphaEvolve has 593, after 592 (Ganzhinov).
    """

    entry = "points"
    in_thread = True
    reference_source = "AlphaEvolve B.11; 592 before it"

    def __init__(self, dimensions: int, reference: int | None = None, limits: LimitsSetting = "quick") -> None:
        self.name = f"kissing_number_{dimensions}"
        super().__init__(limits)
        self.reference = reference
        self.seed_name = "kissing_number"
        self.cases = [Case("one", {"dimensions": dimensions})]
        self.dimensions = dimensions
        self.statement = (
            f"Find as many points in {dimensions} dimensions as possible, none of them the origin, of which no two are "
            "nearer to each other than the farthest of all is to the origin. So many balls can touch a ball of the "
            "same size without overlap.\n\n"
            f"Write `points(dimensions)`, called once with dimensions = {dimensions}. It returns a list of at most "
            f"{MOST} points, each a list of {dimensions} whole numbers between -{LARGEST:.0e} and {LARGEST:.0e}; scale "
            "and round what is not whole. The check is exact: nothing is allowed for rounding.\n\n"
            f"The score is the number of points. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        points = read_points(result, self.dimensions)
        lengths = [sum(map(mul, point, point)) for point in points]
        farthest = max(lengths)
        if min(lengths) == 0:
            raise WrongResultError(f"point {lengths.index(0)} is the origin")
        tight = 0
        for (i, one), (j, other) in combinations(enumerate(points), 2):
            apart = lengths[i] + lengths[j] - 2 * sum(map(mul, one, other))
            if apart < farthest:
                raise WrongResultError(
                    f"points {i} and {j} are too near: their distance squared is {apart / farthest:.9g} of the longest "
                    "point's length squared; it must be 1 or more"
                )
            tight += apart == farthest
        return Verdict(
            float(len(points)),
            f"{len(points)} points; {tight} pairs are exactly as near as is allowed.",
            metrics={"pairs_at_least_distance": float(tight)},
        )


def read_points(result: JSON, dimensions: int) -> list[list[int]]:
    """Read points with coordinates that are whole numbers.

    Raises:
        WrongResultError: naming the first entry that is wrong.
    """
    rows = list_of(result, "points")
    if not 1 <= len(rows) <= MOST:
        raise WrongResultError(f"points must have 1 to {MOST} entries, not {len(rows)}")
    found = []
    for place, row in enumerate(rows):
        point = []
        for entry in list_of(row, f"points[{place}]", dimensions):
            if isinstance(entry, bool) or not isinstance(entry, int):
                raise WrongResultError(f"points[{place}] must have whole numbers, not {kind(entry)}")
            if abs(entry) > LARGEST:
                raise WrongResultError(f"points[{place}] has a coordinate beyond {LARGEST:.0e}")
            point.append(entry)
        found.append(point)
    return found
