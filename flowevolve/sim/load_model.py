"""Estimates from recorded calls how much a server slows down under load.

The model has one parameter, the slowing k: with n requests in flight everything takes 1 + k·n times as long as on an
idle server. It fits servers with continuous batching, whose decode step grows with the batch, and, with k = 0, remote
APIs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

LEAST_CALLS = 50
"""With fewer calls nothing is concluded about the load."""
LEAST_T = 5.0
"""How many standard errors the effect of load must lie above 0. This is much, since calls that run at the same time
share their load, so that the standard error is understated.
"""
LEAST_R_SQUARED = 0.5
"""The share of the variance of latencies that output length and load must explain together."""


@dataclass(frozen=True, slots=True)
class Span:
    """When a call was in flight, in seconds, and how many tokens were written; None if that is not known."""

    started: float
    finished: float
    tokens: int | None


def peak(spans: Sequence[Span]) -> int:
    """The most calls that were in flight at once."""
    most = in_flight = 0
    for _, by, _ in _changes(spans):
        in_flight += by
        most = max(most, in_flight)
    return most


def integrate(spans: Sequence[Span], rate: Callable[[int], float]) -> list[float]:
    """For each span, integrate over its time a function of how many calls were in flight."""
    total = before = 0.0
    in_flight = 0
    integrals = [0.0] * len(spans)
    for time, by, index in _changes(spans):
        if time > before:
            total += rate(in_flight) * (time - before)
            before = time
        in_flight += by
        integrals[index] -= by * total
    return integrals


def learn_slowing(spans: Sequence[Span]) -> float:
    """Estimate the slowing k of the server that served these calls; 0 if they show none.

    The fit is the least squares of seconds = wait + tokens · (a + b · mean load), and k is b / a.
    """
    rows = [
        (span.finished - span.started, float(span.tokens), span.tokens * load / (span.finished - span.started))
        for span, load in zip(spans, integrate(spans, float), strict=True)
        if span.tokens is not None and span.finished > span.started
    ]
    if len(rows) < LEAST_CALLS:
        return 0.0
    seconds, tokens, loaded = (_centred(column) for column in zip(*rows, strict=True))
    tt, tl, ll = _dot(tokens, tokens), _dot(tokens, loaded), _dot(loaded, loaded)
    ts, ls, ss = _dot(tokens, seconds), _dot(loaded, seconds), _dot(seconds, seconds)
    determinant = tt * ll - tl * tl
    if determinant <= 1e-9 * tt * ll:
        return 0.0  # the load never varied, or all answers were equally long
    a, b = (ll * ts - tl * ls) / determinant, (tt * ls - tl * ts) / determinant
    residual = max(0.0, ss - a * ts - b * ls)
    error = sqrt(residual / (len(rows) - 3) * tt / determinant)
    shown = a > 0 and b > LEAST_T * error and 1 - residual / ss >= LEAST_R_SQUARED
    return b / a if shown else 0.0


def _changes(spans: Sequence[Span]) -> list[tuple[float, int, int]]:
    """All changes of the number of calls in flight: the time, the change, and the index of the span.

    At equal times ends come before beginnings.
    """
    begins = [(span.started, 1, index) for index, span in enumerate(spans)]
    ends = [(span.finished, -1, index) for index, span in enumerate(spans)]
    return sorted(begins + ends)


def _centred(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values)
    return [value - mean for value in values]


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))
