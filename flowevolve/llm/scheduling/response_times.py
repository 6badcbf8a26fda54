"""Response times of a backend, measured on our own calls."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice
from statistics import linear_regression

AT_LEAST = 32
"""A sample uses the calls since the last sample, and at least this many: fewer can't separate waiting from writing."""
REMEMBERED = 1024
"""The most calls that a sample uses, and about the number over which the mean length of an answer is taken."""


@dataclass(frozen=True, slots=True)
class ResponseTimeSample:
    """The calls since the last sample. Times are for an answer of the mean length."""

    answered: int
    refused: int
    """Attempts that the server refused because it is overloaded."""
    latency_seconds: float | None
    """The time in flight; None if nothing was answered."""
    wait_seconds: float | None
    """The part of the latency that does not depend on the answer's length: the server's queue and reading the prompt.

    None where it can't be estimated, as all answers had one length or their times vary too much.
    """
    seconds_per_token: float | None
    """The latency divided by the mean length of an answer in tokens."""


class ResponseTimes:
    """Collects the times of finished calls.

    The time in flight consists of waiting, which is the same for short and long answers, and of writing. A linear
    regression of seconds on tokens separates the two, so that a few long answers that end together don't make the
    server look fast.
    """

    def __init__(self) -> None:
        self._calls: deque[tuple[int, float]] = deque(maxlen=REMEMBERED)
        self._answered = self._refused = self._seen = 0
        self._usual = 0.0

    def answered(self, seconds: float, tokens: int) -> None:
        """Note an answer of ``tokens`` after ``seconds`` in flight."""
        if tokens < 1:
            return
        self._calls.append((tokens, seconds))
        self._answered += 1
        self._seen = min(self._seen + 1, REMEMBERED)
        self._usual += (tokens - self._usual) / self._seen

    def refused(self) -> None:
        """Note an attempt that was refused because the server is overloaded."""
        self._refused += 1

    def take_sample(self) -> ResponseTimeSample:
        """The figures since the last sample."""
        latency = wait = per_token = None
        if self._answered:
            wait, per_token = self._line()
            latency = (wait or 0.0) + per_token * self._usual
            per_token = latency / self._usual
        observed = ResponseTimeSample(self._answered, self._refused, latency, wait, per_token)
        self._answered = self._refused = 0
        return observed

    def _line(self) -> tuple[float | None, float]:
        """The seconds of waiting (None: not known), and the seconds of writing for each token."""
        newest = list(islice(reversed(self._calls), max(self._answered, AT_LEAST)))
        tokens, seconds = [call[0] for call in newest], [call[1] for call in newest]
        if min(tokens) < max(tokens):
            slope, intercept = linear_regression(tokens, seconds)
            if slope > 0 and intercept > 0:
                return intercept, slope
        return None, sum(seconds) / sum(tokens)
