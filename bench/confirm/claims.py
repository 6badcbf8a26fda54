"""What is claimed, and when a claim counts as confirmed or refuted. It was written before any model was asked.

A figure is a mean difference of held-out scores between two candidates of the same repeat, over all rows and repeats.
Its 95 % interval comes from drawing rows and repeats anew, each by itself (the bootstrap of two crossed factors), so it
holds for other rows and for other runs. In simulations with 20 and 100 rows and 3 and 5 repeats, which differed more
than rows do or less, it held the true mean in 92 to 99 % of cases. No verdict is read from fewer than `LEAST_REPEATS`.
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
"""The seed prompt, what gepa and the defaults ended with, what the defaults had in half gepa's time."""
Verdict = Literal["confirmed", "refuted", "can't tell"]
Scores = Mapping[Of, Sequence[float]]
"""Of one repeat: for each candidate that was scored, its score on each row held out, in the order of the rows."""


@dataclass(frozen=True, slots=True)
class Claim:
    """That the score of ``one`` less that of ``other`` is at least ``least`` (with 0: above)."""

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
"""The first is no claim of ours. It says whether the comparison can show anything: where gepa finds nothing, whoever
finds nothing is not worse. So the last two can't be confirmed unless it is.
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a claim; without a figure where no repeat has both scores."""

    claim: Claim
    verdict: Verdict
    reason: str
    figure: Interval | None


def answers(repeats: Sequence[Scores]) -> list[Answer]:
    """The answers to all claims from what is there of these repeats."""
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
    """The mean of differences (repeats by rows) with its interval: repeats and rows are drawn anew, independently.

    The bounds are as much further from the mean as few repeats ask for (`widening`). One repeat leaves it open.
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
