"""Speculation: what a stage releases before all of its requests have ended (FlashEvolve §3.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from flowevolve.errors import InputError


@dataclass(frozen=True, slots=True)
class Speculation:
    """``alpha`` maps a stage's name to the fraction of its requests, in (0, 1], after which it releases what it has.

    A stage that is not named waits for all of them. With ``hold``, an evaluation starts the rest of its requests only
    when the first ones have ended and did not stop it: fewer tokens, later verdicts. With ``reorder``, validation
    examples passed ``window`` times in a row move out of the prefix that speculation goes by.

    Raises:
        InputError: if an alpha is not in (0, 1] or the window is below 1.
    """

    alpha: Mapping[str, float] = field(default_factory=dict)
    hold: bool = False
    reorder: bool = False
    window: int = 3

    def __post_init__(self) -> None:
        for stage, alpha in self.alpha.items():
            if not 0 < alpha <= 1:
                raise InputError(f"speculation.alpha.{stage} is {alpha}: it is a fraction above 0 and at most 1")
        if self.window < 1:
            raise InputError(f"speculation.window is {self.window}: it counts rounds, 1 or more")

    def quorum(self, stage: str, requests: int) -> int:
        """After how many of a stage's requests it releases what it has; all of them where it does not speculate."""
        return min(requests, math.ceil(round(self.alpha.get(stage, 1.0) * requests, 9)))

    def active(self, stage: str) -> bool:
        return self.alpha.get(stage, 1.0) < 1


def beats(scores: Mapping[str, float], incumbent: Mapping[str, float], prefix: Sequence[str]) -> bool:
    """Whether the mean over these examples is higher than the incumbent's on the same ones."""
    return fmean(scores[name] for name in prefix) > fmean(incumbent[name] for name in prefix)
