"""Step functions that bound the constants of three autocorrelation inequalities."""

from __future__ import annotations

import math
from itertools import pairwise
from operator import mul

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import list_of, number
from flowevolve.problems.limits import LimitsSetting
from flowevolve.programs import Case, Verdict, WrongResultError

MOST_STEPS = 5000
"""The most steps that a function may have: a check then takes a second or two. Published arrays have up to 4,096."""


class _Autocorrelation(ShippedProblem):
    """A problem whose programs return the heights of a step function."""

    entry = "heights"
    in_thread = True
    asked: str
    """What is to be found, in a sentence."""
    scored_by: str
    """How it is scored, in a few words."""
    signed = False
    """Whether heights may be below 0."""

    def __init__(self, limits: LimitsSetting = "quick") -> None:
        super().__init__(limits)
        which = "numbers, whose sum is not 0" if self.signed else "numbers, none below 0 and not all 0"
        self.statement = (
            f"{self.asked}\n\n"
            f"Write `heights()`, which returns a list of 1 to {MOST_STEPS} {which}: the heights of f on as many equal "
            "parts of the interval from -1/4 to 1/4; elsewhere f is 0.\n\n"
            f"The score is {self.scored_by}. {self.rules}"
        )


class FirstAutocorrelation(_Autocorrelation):
    """A step function f >= 0 on (-1/4, 1/4) whose f*f has a low peak. Value: (integral of f) squared over that peak.

    This is AlphaEvolve's B.1: any f bounds C1 from above by 1 / value. The best known bound is C1 <= 1.50313
    (ThetaEvolve, in CodeEvolve's table 1), and the reference is its inverse. The value is exact up to rounding: f*f is
    linear between multiples of a step's width, so its peak is at one of them.
    """

    name = "autocorrelation_1"
    reference = 1 / 1.50313
    reference_source = "1 over the bound; ThetaEvolve, in CodeEvolve's table 1"
    asked = "Find a step function f >= 0 whose autoconvolution f*f has as low a peak as possible for its integral."
    scored_by = "(integral of f) squared / maximum of f*f"

    def score(self, case: Case, result: JSON) -> Verdict:
        steps = read_heights(result, self.limits.tolerance)
        peak = max(autoconvolution(steps))
        return bounded(2 * len(steps) * peak / math.fsum(steps) ** 2, "C1", len(steps))


class SecondAutocorrelation(_Autocorrelation):
    """A step function f >= 0 whose f*f is as flat as possible. Value: |f*f|_2^2 / (|f*f|_1 |f*f|_oo), at most 1.

    This is AlphaEvolve's B.2: the value bounds C2 from below. The best known value is 0.96102 (AlphaEvolve, in
    CodeEvolve's table 1). The norms are exact up to rounding, since f*f is linear between given points.
    """

    name = "autocorrelation_2"
    reference = 0.96102
    reference_source = "AlphaEvolve, in CodeEvolve's table 1"
    asked = "Find a step function f >= 0 whose autoconvolution g = f*f is as flat as possible."
    scored_by = "(integral of g squared) / (integral of g * maximum of g)"

    def score(self, case: Case, result: JSON) -> Verdict:
        steps = read_heights(result, self.limits.tolerance)
        knots = [0.0, *autoconvolution(steps), 0.0]
        squares = math.fsum(a * a + a * b + b * b for a, b in pairwise(knots)) / 3
        value = squares / (math.fsum(knots) * max(knots))
        return Verdict(
            value,
            f"f with {len(steps)} steps shows that C2 is at least {value:.8f}.",
            metrics={"steps": float(len(steps))},
        )


class ThirdAutocorrelation(_Autocorrelation):
    """A step function f of either sign whose |f*f| has a low peak. Value: (integral of f) squared over that peak.

    This is AlphaEvolve's B.3: any f bounds C3 from above by 1 / value. Its bound is C3 <= 1.4557, after 1.4581 (Vinuesa
    del Rio).
    """

    name = "autocorrelation_3"
    reference = 1 / 1.4557
    reference_source = "1 over the bound; AlphaEvolve B.3"
    asked = (
        "Find a step function f, which may also be below 0, whose autoconvolution f*f stays as near to 0 as possible "
        "for the integral of f."
    )
    scored_by = "(integral of f) squared / maximum of |f*f|"
    signed = True

    def score(self, case: Case, result: JSON) -> Verdict:
        steps = scaled(read_numbers(result))
        total = math.fsum(steps)
        if abs(total) < 1e-6:
            raise WrongResultError(f"the heights add up to {total:.3g} of the largest, too close to 0")
        peak = max(map(abs, autoconvolution(steps)))
        return bounded(2 * len(steps) * peak / total**2, "C3", len(steps))


def bounded(ratio: float, constant: str, steps: int) -> Verdict:
    """The verdict on a function that bounds a constant from above by ``ratio``."""
    return Verdict(
        1 / ratio,
        f"f with {steps} steps shows that {constant} is at most {ratio:.8f}.",
        metrics={"bound": ratio, "steps": float(steps)},
    )


def read_heights(result: JSON, tolerance: float) -> list[float]:
    """Read heights that are not below 0, scaled so that the largest is 1; the problems' values don't depend on scale.

    Heights that are below 0 by no more than the tolerance count as 0.

    Raises:
        WrongResultError: if the result is not a list of valid heights.
    """
    steps = read_numbers(result)
    lowest = min(steps)
    if lowest < -tolerance:
        raise WrongResultError(f"heights[{steps.index(lowest)}] is {lowest:.6g}; no height may be below 0")
    return scaled([max(0.0, step) for step in steps])


def read_numbers(result: JSON) -> list[float]:
    """Read a list of 1 to `MOST_STEPS` numbers.

    Raises:
        WrongResultError: if the result is not such a list.
    """
    entries = list_of(result, "heights")
    if not 1 <= len(entries) <= MOST_STEPS:
        raise WrongResultError(f"heights must have 1 to {MOST_STEPS} entries, not {len(entries)}")
    return [number(entry, f"heights[{place}]") for place, entry in enumerate(entries)]


def scaled(steps: list[float]) -> list[float]:
    """The heights, scaled so that the one farthest from 0 is 1 or -1.

    Raises:
        WrongResultError: if all are 0.
    """
    highest = max(map(abs, steps))
    if highest == 0:
        raise WrongResultError("all heights are 0")
    return [step / highest for step in steps]


def autoconvolution(steps: list[float]) -> list[float]:
    """f*f at the inner ends of its linear pieces, in units of a step's width. At the two outer ends it is 0."""
    n, backwards = len(steps), steps[::-1]
    rising = [sum(map(mul, steps[: k + 1], backwards[n - k - 1 :])) for k in range(n)]
    falling = [sum(map(mul, steps[k:], backwards[: n - k])) for k in range(1, n)]
    return rising + falling
