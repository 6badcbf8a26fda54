"""How fast a backend answers, as its callers see it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice
from statistics import linear_regression

AT_LEAST = 32
"""A look goes by the calls since the last one, and by at least this many: fewer don't tell waiting from writing."""
REMEMBERED = 1024
"""At most so many calls are kept for a look, and over about so many the usual length of an answer is taken."""


@dataclass(frozen=True, slots=True)
class ResponseTimeSample:
    """What there was since the last look. Times are for an answer of the usual length."""

    answered: int
    refused: int
    """Attempts turned away because the server has too much to do."""
    latency_seconds: float | None
    """Time in flight; None if nothing was answered yet."""
    wait_seconds: float | None
    """The part of it that does not depend on the answer's length: in the server's queue, reading the prompt. None where
    the calls don't tell it: answers of one length, or too much chance in their times.
    """
    seconds_per_token: float | None
    """Time in flight over output tokens."""


class Pace:
    """Watches calls end.

    Time in flight is waiting, the same for short and long answers, and writing. A straight line through seconds by
    tokens tells the two apart, so that a few long answers that end together don't make the server look fast.
    """

    def __init__(self) -> None:
        self._calls: deque[tuple[int, float]] = deque(maxlen=REMEMBERED)
        self._answered = self._refused = self._seen = 0
        self._usual = 0.0

    def answered(self, seconds: float, tokens: int) -> None:
        """A call got an answer of so many tokens after so long in flight."""
        if tokens < 1:
            return
        self._calls.append((tokens, seconds))
        self._answered += 1
        self._seen = min(self._seen + 1, REMEMBERED)
        self._usual += (tokens - self._usual) / self._seen

    def refused(self) -> None:
        """An attempt was turned away for want of capacity."""
        self._refused += 1

    def take_sample(self) -> ResponseTimeSample:
        """What there was since the last look."""
        latency = wait = per_token = None
        if self._answered:
            wait, per_token = self._line()
            latency = (wait or 0.0) + per_token * self._usual
            per_token = latency / self._usual
        observed = ResponseTimeSample(self._answered, self._refused, latency, wait, per_token)
        self._answered = self._refused = 0
        return observed

    def _line(self) -> tuple[float | None, float]:
        """Seconds of waiting, where they can be told, and of writing for each token."""
        newest = list(islice(reversed(self._calls), max(self._answered, AT_LEAST)))
        tokens, seconds = [call[0] for call in newest], [call[1] for call in newest]
        if min(tokens) < max(tokens):
            slope, intercept = linear_regression(tokens, seconds)
            if slope > 0 and intercept > 0:
                return intercept, slope
        return None, sum(seconds) / sum(tokens)
