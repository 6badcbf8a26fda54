"""The claims, and when a claim counts as confirmed or refuted. This was written before any model was asked.

A figure is a mean difference of held-out scores between two candidates of the same repeat, over all rows and repeats.
Its 95 % interval comes from resampling rows and repeats independently (the bootstrap of two crossed factors), so it
holds for other rows and for other runs. In simulations with 20 and 100 rows and 3 and 5 repeats, in which repeats
differed more than rows or less, it contained the true mean in 92 to 99 % of cases. There is no verdict from fewer than
`LEAST_REPEATS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bench._lib.intervals import widening
from bench._lib.stats import Interval

MARGIN = 0.02
"""A held-out score that is less than this below another counts as not worse."""
SHARE_OF_TIME = 0.5
LEAST_REPEATS = 3
RESAMPLES = 10_000

Of = Literal["seed", "gepa", "defaults", "half"]
"""The candidates: the seed prompt, those that gepa and the defaults ended with, and the defaults' after half of gepa's
time.
"""
Verdict = Literal["confirmed", "refuted", "can't tell"]
Scores = Mapping[Of, Sequence[float]]
"""For one repeat: the scores of each candidate that was scored, one for each held-out row, in the order of the rows."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim that the score of ``one`` minus that of ``other`` is at least ``least`` or, if that is 0, above it."""

    text: str
    one: Of
    other: Of
    least: float


GEPA_IMPROVES = Claim("gepa's own loop improves the seed prompt", "gepa", "seed", 0.0)
CLAIMS: Sequence[Claim] = (
    GEPA_IMPROVES,
    Claim("the defaults improve the seed prompt", "defaults", "seed", 0.0),
    Claim(
        f"at equal metric calls the defaults' score is not more than {MARGIN:g} below gepa's",
        "defaults", "gepa", -MARGIN,
    ),
    Claim(
        f"after {SHARE_OF_TIME:g} of the time of gepa with one proposal at a time the defaults' score is not more than "
        f"{MARGIN:g} below gepa's last",
        "half", "gepa", -MARGIN,
    ),
)  # fmt: skip
"""The first is not a claim of ours. It tells whether the comparison can show anything: if gepa finds nothing, another
method that finds nothing is not worse. So the last two can't be confirmed unless the first is.
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict on a claim; ``figure`` is None if no repeat has both scores."""

    claim: Claim
    verdict: Verdict
    reason: str
    figure: Interval | None


def answers(repeats: Sequence[Scores]) -> list[Answer]:
    """The answers to all claims from the scores that these repeats have."""
    first = _answer(GEPA_IMPROVES, repeats)
    others = [_answer(claim, repeats) for claim in CLAIMS[1:]]
    return [first, *(_as_far_as_it_shows(each, first) for each in others)]


def _as_far_as_it_shows(answer: Answer, first: Answer) -> Answer:
    if answer.claim.other == "gepa" and answer.verdict == "confirmed" and first.verdict != "confirmed":
        reason = "it is not known that gepa's own loop improves the seed prompt here"
        return Answer(answer.claim, "can't tell", reason, answer.figure)
    return answer


def _answer(claim: Claim, repeats: Sequence[Scores]) -> Answer:
    pairs = [(each[claim.one], each[claim.other]) for each in repeats if claim.one in each and claim.other in each]
    if not pairs:
        return Answer(claim, "can't tell", "no repeat has been made", None)
    figure = crossed_interval(np.array([np.subtract(one, other) for one, other in pairs]))
    if len(pairs) < LEAST_REPEATS:
        return Answer(claim, "can't tell", f"{len(pairs)} of at least {LEAST_REPEATS} repeats", figure)
    if figure.low > claim.least or figure.low == claim.least != 0.0:
        return Answer(claim, "confirmed", "", figure)
    if figure.high < claim.least:
        return Answer(claim, "refuted", "", figure)
    return Answer(claim, "can't tell", f"the interval has {claim.least:+g} in it", figure)


def crossed_interval(differences: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Interval:
    """The mean of differences (repeats by rows) with its interval, from resampling repeats and rows independently.

    As repeats are few, the bounds are moved further from the mean by the factor `widening`. With only one repeat or one
    row they are infinite.
    """
    generator = np.random.default_rng(0)
    repeats, rows = differences.shape
    mean = float(differences.mean())
    if min(repeats, rows) == 1:
        return Interval(mean, -math.inf, math.inf, differences.size)
    # Drawn with replacement, a repeat or a row counts as often as it was drawn.
    of_repeats = generator.multinomial(repeats, np.full(repeats, 1 / repeats), RESAMPLES) / repeats
    of_rows = generator.multinomial(rows, np.full(rows, 1 / rows), RESAMPLES) / rows
    means = np.einsum("sr,rc,sc->s", of_repeats, differences, of_rows, optimize=True)
    of_mean = [(size, float(differences.mean(axis).var(ddof=1)) / size**2) for size, axis in ((repeats, 1), (rows, 0))]
    low, high = mean + widening(of_mean) * (np.percentile(means, [2.5, 97.5]) - mean)
    return Interval(mean, float(low), float(high), differences.size)
