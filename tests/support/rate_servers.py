"""Servers that refuse, and callers that `ModelRates` leads, on a clock of their own: no loop, no network."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flowevolve.llm.scheduling.model_rates import Bucket, ModelRates, SentRequest

Bears = Callable[[float], bool]
"""Whether a request that comes at this time is served."""

REFUSED_AFTER = 0.02
"""Seconds; answers take much longer."""


def token_bucket(per_second: float) -> Bears:
    bucket = Bucket.per_minute(60 * per_second, 0.0)

    def bears(now: float) -> bool:
        if bucket.wait(now, 1.0) > 0:
            return False
        bucket.take(1.0)
        return True

    return bears


def fixed_window(requests: int, seconds: float) -> Bears:
    """Counts what it refuses, too."""
    window = count = 0

    def bears(now: float) -> bool:
        nonlocal window, count
        if window != now // seconds:
            window, count = int(now // seconds), 0
        count += 1
        return count <= requests

    return bears


def at_random(share: float, inner: Bears = lambda now: True, seed: int = 1) -> Bears:
    """Refuses this share whatever the rate, and otherwise what ``inner`` does."""
    rng = random.Random(seed)
    return lambda now: rng.random() >= share and inner(now)


def rising(before: Bears, after: Bears, at: float) -> Bears:
    return lambda now: (before if now < at else after)(now)


@dataclass
class Seen:
    """What came of it, per second where it is a rate."""

    seconds: float
    sent: int = 0
    answered: int = 0
    refused: int = 0

    @property
    def rate(self) -> float:
        return self.answered / self.seconds

    @property
    def share_refused(self) -> float:
        return self.refused / max(1, self.sent)


class Callers:
    """``count`` callers, each of which asks again as soon as it is answered, and after a backoff when it is refused."""

    def __init__(
        self, bears: Bears, count: int, latency: float, *, retry_after: Callable[[float], float] | None = None
    ) -> None:
        self.rates = ModelRates()
        self.times: list[float] = []
        """When each request was sent."""
        self._bears = bears
        self._latency = latency
        self._retry_after = retry_after
        self._rng = random.Random(7)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._planned = 0
        self._line: deque[int] = deque()
        self._now = self._woken = 0.0
        self._ends: list[tuple[float, bool]] = []
        for _ in range(count):
            self._at(0.0, lambda: self._line.append(0))

    def go(self, seconds: float, *, after: float = 0.0) -> Seen:
        """Run until ``seconds``; what was seen is counted from ``after`` on."""
        while self._due and self._due[0][0] <= seconds:
            self._now, _, happens = heapq.heappop(self._due)
            happens()
            self._send()
        ends = [answered for at, answered in self._ends if at > after]
        sent = sum(at > after for at in self.times)
        return Seen(seconds - after, sent, sum(ends), len(ends) - sum(ends))

    def _at(self, time: float, happens: Callable[[], None]) -> None:
        self._planned += 1
        heapq.heappush(self._due, (time, self._planned, happens))

    def _send(self) -> None:
        while self._line:
            wait = self.rates.wait(self._now, 0.0)
            if wait > 0:
                if self._now + wait != self._woken:
                    self._woken = self._now + wait
                    self._at(self._woken, lambda: None)
                return
            attempt, sent = self._line.popleft(), self.rates.take(self._now, 0.0)
            self.times.append(self._now)
            if self._bears(self._now):
                self._at(self._now + self._latency * self._rng.uniform(0.5, 1.5), partial(self._answer, sent))
            else:
                self._at(self._now + REFUSED_AFTER, partial(self._refuse, sent, attempt))

    def _answer(self, sent: SentRequest) -> None:
        self.rates.answered(sent, self._now, 0)
        self._ends.append((self._now, True))
        self._line.append(0)

    def _refuse(self, sent: SentRequest, attempt: int) -> None:
        asked = None if self._retry_after is None else self._retry_after(self._now)
        self.rates.refused(sent, self._now, asked)
        self._ends.append((self._now, False))
        backoff = min(30.0, 2.0**attempt)
        wait = (backoff if asked is None else asked) + self._rng.uniform(0, 0.5) * backoff
        self._at(self._now + wait, lambda: self._line.append(attempt + 1))
