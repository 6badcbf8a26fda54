"""Points whose distances from each other are as equal as possible."""

from __future__ import annotations

import math
from itertools import combinations

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import vectors
from flowevolve.problems.limits import LimitsSetting
from flowevolve.programs import Case, Verdict, WrongResultError

FARTHEST = 1e6
"""The largest coordinate that is allowed. Larger ones are not needed, as only ratios of distances count."""
CLOSEST = 1e-6
"""Points closer than this share of the largest distance count as the same point."""


class MinMaxDistance(ShippedProblem):
    """``n`` points in ``dimensions`` whose largest distance is small compared with their smallest.

    Value: the smallest distance over the largest, squared. This is AlphaEvolve's B.8, which gives the inverse of the
    value. The best known are 12.88923 for 16 points in the plane and 4.16579 for 14 in space (CodeEvolve, table 1), and
    the references are their inverses.
    """

    entry = "place"
    reference_source = "1 over the squared ratio; CodeEvolve, table 1"

    def __init__(
        self, n: int, dimensions: int, reference: float | None = None, limits: LimitsSetting = "quick"
    ) -> None:
        self.name = f"min_max_distance_{dimensions}d"
        super().__init__(limits)
        self.reference = reference
        self.cases = [Case("one", {"n": n, "dimensions": dimensions})]
        self.n, self.dimensions = n, dimensions
        self.statement = (
            f"Place {n} points in {dimensions} dimensions so that the largest distance between two of them is as small "
            "as possible against the smallest.\n\n"
            f"Write `place(n, dimensions)`, called once with n = {n} and dimensions = {dimensions}. It returns a list "
            f"of {n} points, each a list of {dimensions} coordinates between -{FARTHEST:g} and {FARTHEST:g}; no two "
            "may be the same.\n\n"
            f"The score is (smallest distance / largest distance) squared. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        points = vectors(result, "points", self.n, self.dimensions)
        for place, point in enumerate(points):
            if max(map(abs, point)) > FARTHEST:
                raise WrongResultError(f"point {place} has a coordinate beyond {FARTHEST:g}")
        apart = sorted((math.dist(one, other), i, j) for (i, one), (j, other) in combinations(enumerate(points), 2))
        least, i, j = apart[0]
        most, far_i, far_j = apart[-1]
        if least <= CLOSEST * most:
            raise WrongResultError(f"points {i} and {j} are the same; all must differ")
        near = sum(length < least * (1 + 1e-6) for length, _, _ in apart)
        far = sum(length > most * (1 - 1e-6) for length, _, _ in apart)
        ratio = most / least
        return Verdict(
            (least / most) ** 2,
            f"Largest over smallest distance, squared: {ratio**2:.8f}. Points {i} and {j} are nearest ({near} pairs "
            f"as near), {far_i} and {far_j} the farthest ({far} pairs as far).",
            metrics={"squared_ratio": ratio**2},
        )
