"""Step functions that bound the constants of two autocorrelation inequalities."""

from __future__ import annotations

import math
from itertools import pairwise
from operator import mul

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import list_of, number
from flowevolve.programs import Case, Verdict, WrongResultError

MOST_STEPS = 1000
"""The most steps that a function may have, so that a check takes milliseconds."""

_FUNCTION = (
    f"returns a list of 1 to {MOST_STEPS} numbers, none below 0 and not all 0: the heights of f on as many equal parts "
    "of the interval from -1/4 to 1/4; elsewhere f is 0."
)


class FirstAutocorrelation(ShippedProblem):
    """A step function f >= 0 on (-1/4, 1/4) whose f*f has a low peak. Value: (integral of f) squared over that peak.

    This is AlphaEvolve's B.1: any f bounds C1 from above by 1 / value. The best known bound is C1 <= 1.50313
    (ThetaEvolve, in CodeEvolve's table 1), and the reference is its inverse. The value is exact up to rounding: f*f is
    linear between multiples of a step's width, so its peak is at one of them.
    """

    name = "autocorrelation_1"
    entry = "heights"
    reference = 1 / 1.50313

    def __init__(self) -> None:
        self.statement = (
            "Find a step function f >= 0 whose autoconvolution f*f has as low a peak as possible for its integral.\n\n"
            f"Write `heights()`, which {_FUNCTION}\n\n"
            f"The score is (integral of f) squared / maximum of f*f. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        steps = read_heights(result)
        peak = max(autoconvolution(steps))
        ratio = 2 * len(steps) * peak / math.fsum(steps) ** 2
        return Verdict(
            1 / ratio,
            f"f with {len(steps)} steps shows that C1 is at most {ratio:.8f}.",
            metrics={"bound": ratio, "steps": float(len(steps))},
        )


class SecondAutocorrelation(ShippedProblem):
    """A step function f >= 0 whose f*f is as flat as possible. Value: |f*f|_2^2 / (|f*f|_1 |f*f|_oo), at most 1.

    This is AlphaEvolve's B.2: the value bounds C2 from below. The best known value is 0.96102 (AlphaEvolve, in
    CodeEvolve's table 1). The norms are exact up to rounding, since f*f is linear between given points.
    """

    name = "autocorrelation_2"
    entry = "heights"
    reference = 0.96102

    def __init__(self) -> None:
        self.statement = (
            "Find a step function f >= 0 whose autoconvolution g = f*f is as flat as possible.\n\n"
            f"Write `heights()`, which {_FUNCTION}\n\n"
            f"The score is (integral of g squared) / (integral of g * maximum of g). {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        steps = read_heights(result)
        knots = [0.0, *autoconvolution(steps), 0.0]
        squares = math.fsum(a * a + a * b + b * b for a, b in pairwise(knots)) / 3
        value = squares / (math.fsum(knots) * max(knots))
        return Verdict(
            value,
            f"f with {len(steps)} steps shows that C2 is at least {value:.8f}.",
            metrics={"steps": float(len(steps))},
        )


def read_heights(result: JSON) -> list[float]:
    """Read the heights of a step function, scaled so that the largest is 1; the problems' values don't depend on scale.

    Raises:
        WrongResultError: if the result is not a list of valid heights.
    """
    entries = list_of(result, "heights")
    if not 1 <= len(entries) <= MOST_STEPS:
        raise WrongResultError(f"heights must have 1 to {MOST_STEPS} entries, not {len(entries)}")
    steps = [number(entry, f"heights[{place}]") for place, entry in enumerate(entries)]
    lowest = min(steps)
    if lowest < 0:
        raise WrongResultError(f"heights[{steps.index(lowest)}] is {lowest:.6g}; no height may be below 0")
    highest = max(steps)
    if highest == 0:
        raise WrongResultError("all heights are 0")
    return [step / highest for step in steps]


def autoconvolution(steps: list[float]) -> list[float]:
    """f*f at the inner ends of its linear pieces, in units of a step's width. At the two outer ends it is 0."""
    n, backwards = len(steps), steps[::-1]
    rising = [sum(map(mul, steps[: k + 1], backwards[n - k - 1 :])) for k in range(n)]
    falling = [sum(map(mul, steps[k:], backwards[: n - k])) for k in range(1, n)]
    return rising + falling
