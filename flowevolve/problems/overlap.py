"""Erdős's minimum overlap problem, by step functions."""

from __future__ import annotations

import math
from operator import mul

from flowevolve._util.json_types import JSON
from flowevolve.problems.autocorrelation import MOST_STEPS, read_numbers
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.limits import LimitsSetting
from flowevolve.programs import Case, Verdict, WrongResultError


class MinimumOverlap(ShippedProblem):
    """A function h from [0, 2] to [0, 1] with integral 1 that overlaps little with 1 - h. Value: 1 over the overlap.

    This is AlphaEvolve's B.5, after Haugland: any h bounds C5 from above by the largest of the integrals of
    h(x) (1 - h(x + k)) over all k, where both factors are 0 outside of [0, 2]. AlphaEvolve's bound is 0.380924, after
    Haugland's 0.380927. The value is exact up to rounding: the overlap is linear between multiples of a step's width.
    """

    name = "erdos_minimum_overlap"
    entry = "heights"
    in_thread = True
    reference = 1 / 0.380924
    reference_source = "1 over the bound 0.380924; AlphaEvolve B.5"

    def __init__(self, limits: LimitsSetting = "quick") -> None:
        super().__init__(limits)
        self.statement = (
            "Find a step function h from [0, 2] to [0, 1] with integral 1 that overlaps as little as possible with "
            "1 - h, however the two are moved against each other.\n\n"
            f"Write `heights()`, which returns a list of 1 to {MOST_STEPS} numbers from 0 to 1, whose mean is 1/2: the "
            "heights of h on as many equal parts of the interval from 0 to 2. They, or what they lack to 1, are "
            f"scaled down to a mean of exactly 1/2 if it is off by {self.limits.tolerance:g} or less.\n\n"
            "The overlap at k is the integral of h(x) (1 - h(x + k)) over all x for which both x and x + k are in "
            f"[0, 2]. The score is 1 over the largest overlap at any k from -2 to 2. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        steps = self._heights(result)
        found = overlaps(steps)
        bound = max(found)
        where = (found.index(bound) - len(steps) + 1) * 2 / len(steps)
        return Verdict(
            1 / bound,
            f"h with {len(steps)} steps shows that C5 is at most {bound:.8f}; it overlaps most at k = {where:.4g}.",
            metrics={"bound": bound, "steps": float(len(steps))},
        )

    def _heights(self, result: JSON) -> list[float]:
        """Read heights with a mean of 1/2.

        Raises:
            WrongResultError: if the result is not a list of such heights.
        """
        tolerance = self.limits.tolerance
        steps = read_numbers(result)
        for place, step in enumerate(steps):
            if not -tolerance <= step <= 1 + tolerance:
                raise WrongResultError(f"heights[{place}] is {step:.9g}; each must be from 0 to 1")
        steps = [min(1.0, max(0.0, step)) for step in steps]
        mean = math.fsum(steps) / len(steps)
        if abs(mean - 0.5) > tolerance:
            raise WrongResultError(f"the mean of the heights is {mean:.9g}; it must be 1/2")
        if mean >= 0.5:
            return [step / (2 * mean) for step in steps]
        return [1 - (1 - step) / (2 * (1 - mean)) for step in steps]


def overlaps(steps: list[float]) -> list[float]:
    """The overlaps at k = -2 + w, ..., 2 - w, where w is the width of a step; at -2 and 2 there is none."""
    n, rest = len(steps), [1 - step for step in steps]
    width = 2 / n
    below = [width * sum(map(mul, steps[n - k :], rest[:k])) for k in range(1, n)]
    above = [width * sum(map(mul, steps[: n - k], rest[k:])) for k in range(n)]
    return below + above
