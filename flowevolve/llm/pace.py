"""How fast a backend answers, as its callers see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Observed:
    """The calls that ended since the last look."""

    answered: int
    refused: int
    """Attempts turned away because the server has too much to do."""
    latency_seconds: float | None
    """Mean of the calls that were answered; None if there were none."""
    seconds_per_token: float | None
    """Their time in flight over their output tokens; None if there were none."""


class Pace:
    """Sums up calls from one look to the next."""

    def __init__(self) -> None:
        self._answered = self._refused = self._tokens = 0
        self._seconds = 0.0

    def answered(self, seconds: float, tokens: int) -> None:
        """A call got an answer of so many tokens after so long in flight."""
        self._answered += 1
        self._seconds += seconds
        self._tokens += tokens

    def refused(self) -> None:
        """An attempt was turned away for want of capacity."""
        self._refused += 1

    def look(self) -> Observed:
        """What there was since the last look."""
        observed = Observed(
            self._answered,
            self._refused,
            self._seconds / self._answered if self._answered else None,
            self._seconds / self._tokens if self._tokens else None,
        )
        self._answered = self._refused = self._tokens = 0
        self._seconds = 0.0
        return observed
