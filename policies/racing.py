"""Racing policies: when an evaluation is not worth finishing.

They are asked each time a result comes in. If an evaluation is not worth finishing, it is stopped, its open requests
are cancelled, and its candidate is rejected, or revoked if it was released speculatively.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist, fmean, variance
from typing import ClassVar

from flowevolve._util.errors import InputError
from flowevolve.core.policies import Race
from flowevolve.tasks.rollout_checks import MARGIN


@dataclass(frozen=True, slots=True)
class Bound:
    """Stop an evaluation whose candidate could not be accepted even if every open example scored ``ceiling``.

    This is sound for scores of at most ``ceiling`` and any acceptance policy that does not reject a candidate for
    scoring higher: nothing is stopped that would have been accepted by the standing at that time.

    Raises:
        InputError: if the ceiling is not a number, or a score is above it.
    """

    ceiling: float = 1.0
    needs_improvement: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_ceiling(self.ceiling)

    def hopeless(self, race: Race) -> str | None:
        _check_scores(race, self.ceiling)
        at_best = {name: race.scores.get(name, self.ceiling) for name in race.order}
        if race.acceptance.admits(at_best, race.standing):
            return None
        return "it can't be accepted any more, however high its other scores are"


@dataclass(frozen=True, slots=True)
class Confidence:
    """Stop when a one-sided test says, at level ``1 - delta``, that the mean won't beat the incumbent's.

    The test treats the paired differences on the ``n`` finished examples as a sample without replacement of all ``N``:
    stop if mean + z(1 - delta) * s / sqrt(n) * sqrt(1 - n / N) <= 0. It is made whenever ``n`` is a multiple of
    ``least``, and ``delta`` is divided among these looks (Bonferroni). If all differences are equal, nothing is known
    about how much they vary; then losses count only from the second look on. The normal approximation and the order of
    arrival make the level approximate. Examples on which the incumbent has no score are ignored.

    Raises:
        InputError: if a setting is out of range.
    """

    delta: float = 0.05
    least: int = 8
    needs_improvement: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise InputError(
                f"racing.delta is {self.delta:g}, but has to be above 0 and below 1, as it is the chance to err"
            )
        if self.least < 1:
            raise InputError(f"racing.least is {self.least}, but has to be at least 1")

    def hopeless(self, race: Race) -> str | None:
        incumbent = race.standing.incumbent
        differences = [score - incumbent[name] for name, score in race.scores.items() if name in incumbent]
        n, total = len(differences), sum(name in incumbent for name in race.order)
        if n < max(2, self.least) or n % self.least:
            return None
        if min(differences) == max(differences) and (differences[0] >= 0 or n < 2 * max(2, self.least)):
            return None
        looks = max(1, (total - 1) // self.least)
        z = NormalDist().inv_cdf(1 - self.delta / looks)
        error = (variance(differences) / n * (1 - n / total)) ** 0.5
        if fmean(differences) + z * error > 0:
            return None
        return f"its mean is not above that of the best candidate, with a confidence of {1 - self.delta:g}"


@dataclass(frozen=True, slots=True)
class Prefix:
    """Stop an evaluation whose candidate would not be accepted if the speculative prefix were the whole validation set.

    This is FlashEvolve's gate against weak candidates, used to stop: cheap, and as reliable as the prefix is
    informative. If not even ``ceiling`` on all of the prefix would be accepted, because the best candidate has that
    already, nothing is stopped: otherwise nothing would ever be accepted again.

    Raises:
        InputError: if the ceiling is not a number, or a score is above it.
    """

    ceiling: float = 1.0
    needs_improvement: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_ceiling(self.ceiling)

    def hopeless(self, race: Race) -> str | None:
        prefix = race.order[: race.prefix]
        if any(name not in race.scores for name in prefix):
            return None
        _check_scores(race, self.ceiling)
        if race.acceptance.admits({name: race.scores[name] for name in prefix}, race.standing):
            return None
        if not race.acceptance.admits(dict.fromkeys(prefix, self.ceiling), race.standing):
            return None
        return "its scores on the speculative prefix are too low to be accepted"


def _check_ceiling(ceiling: float) -> None:
    if math.isnan(ceiling):
        raise InputError(
            "racing.ceiling is nan, but has to be the highest score there can be (inf where there is none)"
        )


def _check_scores(race: Race, ceiling: float) -> None:
    highest = max(*race.scores.values(), *race.standing.incumbent.values())
    if highest > ceiling + MARGIN:
        raise InputError(
            f"racing.ceiling is {ceiling:g}, but there is a score of {highest:g}. Set it to the highest score there "
            "can be (inf where there is none)"
        )
