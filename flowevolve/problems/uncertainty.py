"""An uncertainty inequality: how soon a function and its Fourier transform can both stop changing sign."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import ShippedProblem
from flowevolve.problems.checks import list_of, number
from flowevolve.problems.limits import LimitsSetting
from flowevolve.programs import Case, Verdict, WrongResultError

MOST_COEFFICIENTS = 12
"""The most coefficients that are allowed. The check is exact, and takes a second with this many."""

Polynomial = list[int]
"""Coefficients in order of ascending powers; the last is not 0."""


class UncertaintyInequality(ShippedProblem):
    """A combination of Hermite functions of the degrees 0, 4, 8, ... Value: 2 pi over its squared last sign change.

    This is AlphaEvolve's B.4. For an even f with f(0) <= 0 that equals its own Fourier transform and is not below 0
    from x = r on, C4 is at most r^2 / (2 pi) with the functions scaled as here. AlphaEvolve's bound is 0.3521, after
    0.3523 (Goncalves, Oliveira e Silva and Steinerberger). The program gives all coefficients but the last, which
    follows from f(0) = 0. Zeros are counted exactly, by Sturm's theorem, since numerical methods could miss double
    zeros or find some that are not there.
    """

    name = "uncertainty_inequality"
    entry = "coefficients"
    in_thread = True
    reference = 1 / 0.3521
    reference_source = "1 over the bound 0.3521; AlphaEvolve B.4"

    def __init__(self, limits: LimitsSetting = "quick") -> None:
        super().__init__(limits)
        self.statement = (
            "Find a polynomial P(x) = c0 H0(x) + c1 H4(x) + ... + cm H4m(x), of the physicists' Hermite polynomials "
            "whose degrees are multiples of 4, with P(0) = 0, whose largest zero is as small as possible.\n\n"
            f"Write `coefficients()`, which returns a list of 1 to {MOST_COEFFICIENTS} numbers: c0 to c(m-1). The "
            "last, cm, follows from P(0) = 0; then all are multiplied by -1 if P would else end up below 0. What "
            "counts is the largest zero r above 0 of P(x) / x^2, found exactly; a place where P "
            "only touches 0 is a zero, too.\n\n"
            f"The score is 2 pi / r^2. {self.rules}"
        )

    def score(self, case: Case, result: JSON) -> Verdict:
        entries = list_of(result, "coefficients")
        if not 1 <= len(entries) <= MOST_COEFFICIENTS:
            raise WrongResultError(f"coefficients must have 1 to {MOST_COEFFICIENTS} entries, not {len(entries)}")
        given = [number(entry, f"coefficients[{place}]") for place, entry in enumerate(entries)]
        squared = largest_root(in_squares(given))
        if squared is None:
            raise WrongResultError("P has no zero above 0, which can only be if all coefficients are 0 or cancel out")
        bound = float(squared) / (2 * math.pi)
        return Verdict(
            1 / bound,
            f"The largest zero is at {math.sqrt(squared):.8f}, which shows that C4 is at most {bound:.8f}.",
            metrics={"bound": bound, "coefficients": float(len(given))},
        )


def in_squares(given: Sequence[float]) -> Polynomial:
    """P(x) / x^2 as a polynomial in x^2 with whole coefficients, up to a factor; empty if it is 0."""
    degrees = [4 * place for place in range(len(given) + 1)]
    at_zero = [math.factorial(degree) // math.factorial(degree // 2) for degree in degrees]
    exact = [Fraction(coefficient) for coefficient in given]
    exact.append(-sum((a * b for a, b in zip(exact, at_zero, strict=False)), Fraction(0)) / at_zero[-1])
    total = [Fraction(0)] * (degrees[-1] // 2 + 1)
    for coefficient, degree in zip(exact, degrees, strict=True):
        for power, whole in enumerate(hermite_in_squares(degree)):
            total[power] += coefficient * whole
    common = math.lcm(*(part.denominator for part in total))
    return primitive([int(part * common) for part in total[1:]])


def hermite_in_squares(degree: int) -> list[int]:
    """The physicists' Hermite polynomial of an even degree, as a polynomial in x^2."""
    half = degree // 2
    return [
        (-1) ** (half - power) * math.factorial(degree) * 4**power
        // (math.factorial(half - power) * math.factorial(2 * power))
        for power in range(half + 1)
    ]  # fmt: skip


def largest_root(polynomial: Polynomial) -> Fraction | None:
    """An upper bound on the largest root above 0, at most a relative 2^-50 too high; None if there is no such root."""
    chain = sturm_chain(polynomial)
    if not chain or not roots_above(Fraction(0), chain):
        return None
    high = Fraction(2 ** (1 + max(1, max(map(abs, polynomial)) // abs(polynomial[-1])).bit_length()))
    low = Fraction(0)
    while high - low > high / 2**50:
        middle = (low + high) / 2
        if roots_above(middle, chain):
            low = middle
        else:
            high = middle
    return high


def sturm_chain(polynomial: Polynomial) -> list[Polynomial]:
    """Sturm's chain of the polynomial that has each of these roots once; members are up to a positive factor."""
    if len(polynomial) < 2:
        return []
    derivative = [power * part for power, part in enumerate(polynomial)][1:]
    chain = [polynomial, primitive(derivative)]
    while len(chain[-1]) > 1:
        rest = primitive([-part for part in remainder(chain[-2], chain[-1])])
        if not rest:
            break
        chain.append(rest)
    common = chain[-1]  # it has the multiple roots, at which all members would be 0
    return [primitive(divide(each, common)[0]) for each in chain]


def remainder(dividend: Polynomial, divisor: Polynomial) -> list[int]:
    """The remainder of a division, times a positive number that makes its coefficients integers."""
    return divide(dividend, divisor)[1]


def divide(dividend: Polynomial, divisor: Polynomial) -> tuple[list[int], list[int]]:
    """Quotient and remainder, both times a positive number that makes their coefficients integers."""
    rest, leading = list(dividend), divisor[-1]
    quotient: list[int] = []
    while len(rest) >= len(divisor):
        factor, shift = rest[-1], len(rest) - len(divisor)
        rest = [part * abs(leading) for part in rest]
        if leading < 0:
            factor = -factor
        quotient = [factor, *(part * abs(leading) for part in quotient)]
        for power, part in enumerate(divisor):
            rest[shift + power] -= factor * part
        rest.pop()
    return quotient, rest


def primitive(coefficients: Sequence[int]) -> Polynomial:
    """The polynomial without common factors and without leading zeros."""
    kept = list(coefficients)
    while kept and kept[-1] == 0:
        kept.pop()
    common = math.gcd(*kept)
    return [part // common for part in kept]


def roots_above(place: Fraction, chain: Sequence[Polynomial]) -> int:
    """How many different roots the chain's first polynomial has above a place."""
    here = [sign for sign in (_sign_at(place, each) for each in chain) if sign]
    far = [1 if each[-1] > 0 else -1 for each in chain]
    return sum(a != b for a, b in pairwise(here)) - sum(a != b for a, b in pairwise(far))


def _sign_at(place: Fraction, polynomial: Polynomial) -> int:
    up, down = place.numerator, place.denominator
    value, scale = 0, 1
    for part in reversed(polynomial):
        value = value * up + part * scale
        scale *= down
    return (value > 0) - (value < 0)
