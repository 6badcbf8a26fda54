"""Admission policies: how many requests may be in flight (`flowevolve.llm.scheduling.admission.Admission`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from flowevolve._util.errors import InputError
from flowevolve.llm.scheduling.admission import LimitDecision, LoadSample

CUT = 0.7
"""The factor by which the limit is cut when the server rejects requests."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always allows the highest number of requests."""

    def first(self, most: int) -> int:
        return most

    def decide(self, load: LoadSample) -> LimitDecision:
        return LimitDecision(load.most, "fixed")


@dataclass(slots=True)
class Latency:
    """Sets the limit by how fast answers come, for servers that report nothing about themselves.

    Tokens per second are requests in flight over seconds per token. The limit doubles as long as at least ``gain`` of
    the change comes back as tokens per second, and later grows by ``step``; a change that did not pay is undone. If
    calls wait longer than the shortest wait seen, the server has a queue. If that extra wait is more than twice
    ``target`` of the whole latency, the limit is cut by the surplus; from ``target`` on, it does not grow. If a cut
    does not remove at least half of the surplus, there was no queue: calls take that long at any limit, and the
    shortest wait is set to this. A limit is judged once as many calls have been answered under it as are in flight,
    because earlier calls met another queue. When the server rejects requests, the limit is cut at once.

    Raises:
        InputError: if a setting is out of range.
    """

    target: float = 0.05
    start: int = 16
    least: int = 4
    step: float = 0.15
    gain: float = 0.2
    _growing: bool = field(default=True, init=False)
    _before: tuple[int, float] | None = field(default=None, init=False)
    """The limit before the last change, and the tokens per second under it."""
    _answered: int = field(default=0, init=False)
    """Answered calls since the last change; negative while calls beyond a cut limit are still in flight."""
    _least_wait: float = field(default=math.inf, init=False)
    _cut_at: float | None = field(default=None, init=False)
    """The share of waiting at the last cut, until its effect is known."""

    def __post_init__(self) -> None:
        _check(self.start, self.least, target=self.target, step=self.step, gain=self.gain)

    def first(self, most: int) -> int:
        return min(most, self.start)

    def decide(self, load: LoadSample) -> LimitDecision:
        if load.refused:
            self._growing, self._before, self._answered, self._cut_at = False, None, 0, None
            return LimitDecision(_cut(load, self.least), "the server refused requests")
        settled = self._answered >= load.in_flight
        self._answered += load.answered
        if not settled or not load.used_up or not load.latency_seconds:
            return LimitDecision(load.limit, "not known yet")
        waiting = self._waiting(load.wait_seconds, load.latency_seconds)
        if self.target < waiting <= 2 * self.target:
            return LimitDecision(load.limit, "as wanted")
        verdict = self._without_surplus(load, waiting) if waiting > self.target else self._climb(load)
        self._answered = min(0, verdict.limit - load.in_flight)
        return verdict

    def _waiting(self, wait: float | None, latency: float) -> float:
        """The share of their time in flight that calls wait in the server's queue; 0 if it is unknown."""
        if wait is None:
            return 0.0
        self._least_wait = min(self._least_wait, wait)
        waiting = (wait - self._least_wait) / latency
        if self._cut_at is not None and waiting > (self._cut_at + self.target) / 2:
            self._least_wait, waiting = wait, 0.0
        self._cut_at = None
        return waiting

    def _without_surplus(self, load: LoadSample, waiting: float) -> LimitDecision:
        self._growing, self._before, self._cut_at = False, None, waiting
        lower = max(self.least, round(load.limit * (1 - waiting + self.target)))
        return LimitDecision(lower, "calls wait too long in the server's queue")

    def _climb(self, load: LoadSample) -> LimitDecision:
        if not load.in_flight or not load.seconds_per_token:
            return LimitDecision(load.limit, "not known yet")
        rate = load.in_flight / load.seconds_per_token
        verdict = self._up(load) if self._pays(load.limit, rate) else self._down(load)
        if verdict.limit != load.limit:
            self._before = (load.limit, rate)
        return verdict

    def _pays(self, limit: int, rate: float) -> bool:
        """Whether enough of the last change of the limit came back as tokens per second."""
        if self._before is None or self._before[0] == limit:
            return True
        limit_before, rate_before = self._before
        return math.log(rate / rate_before) / math.log(limit / limit_before) >= self.gain

    def _factor(self) -> float:
        return 2.0 if self._growing else 1 + self.step

    def _up(self, load: LoadSample) -> LimitDecision:
        higher = min(load.most, max(load.limit + 1, round(load.limit * self._factor())))
        return LimitDecision(higher, "more requests at a time may bring more tokens per second")

    def _down(self, load: LoadSample) -> LimitDecision:
        lower = max(self.least, min(load.limit - 1, round(load.limit / self._factor())))
        self._growing = False
        return LimitDecision(lower, "more requests at a time bring hardly any more tokens per second")


@dataclass(slots=True)
class ServerQueue:
    """Keeps the server's own queue near ``target`` times the requests that it works on: it always has the next request
    at hand, and the rest wait here, where they can still be reordered.

    The limit is multiplied by ``growth`` at each look until the server's queue is first seen; then it grows by what the
    queue lacks. If the queue is longer than twice the target, the limit is cut by the excess at once. If other clients
    have requests there, too, it is cut by our share of the excess, and grows as at first once the queue is gone. A
    queue of up to twice the target is then shared: at each look the limit loses its share of what exceeds the target
    and gains a quarter of the target, so that runs with unequal limits converge to similar ones. As long as the server
    reports nothing about itself, the limit follows `Latency`.

    Raises:
        InputError: if a setting is out of range.
    """

    target: float = 0.05
    start: int = 16
    least: int = 4
    growth: float = 1.5
    _growing: bool = field(default=True, init=False)
    _by_latency: Latency = field(init=False)

    def __post_init__(self) -> None:
        _check(self.start, self.least, target=self.target)
        _check_above(1, growth=self.growth)
        self._by_latency = Latency(self.target, self.start, self.least)

    def first(self, most: int) -> int:
        return min(most, self.start)

    def decide(self, load: LoadSample) -> LimitDecision:
        if load.server is None:
            return self._by_latency.decide(load)
        if load.refused:
            self._growing = False
            return LimitDecision(_cut(load, self.least), "the server refused requests")
        wanted = max(1, round(self.target * load.server.running))
        excess = load.server.waiting - wanted
        total = max(load.in_flight, load.server.running + load.server.waiting)
        shared = total - load.in_flight > wanted
        ours = round(excess * load.in_flight / max(1, total))
        if excess > wanted:
            self._growing = shared
            lower = max(self.least, min(load.limit, load.in_flight - ours))
            return LimitDecision(lower, "the server's queue is too long")
        if not load.used_up or (excess >= 0 and not shared):
            return LimitDecision(load.limit, "as wanted")
        if excess >= 0:
            fair = max(self.least, min(load.most, load.limit - ours + max(1, wanted // 4)))
            return LimitDecision(fair, "the server's queue is shared with other clients")
        if self._growing and load.server.waiting == 0:
            higher = min(load.most, max(load.limit + 1, int(load.limit * self.growth)))
            return LimitDecision(higher, "the server's queue is empty")
        return LimitDecision(min(load.most, load.limit - excess), "the server's queue is shorter than wanted")


def _cut(load: LoadSample, least: int) -> int:
    return max(least, min(load.limit, int(CUT * min(load.limit, load.in_flight))))


def _check(start: int, least: int, **above_zero: float) -> None:
    if least < 1:
        raise InputError(f"scheduler.admission.least is {least}, but has to be at least 1")
    if start < least:
        raise InputError(
            f"scheduler.admission.least is {least}, but has to be at most start, which is {start}; lower it, or raise "
            "start"
        )
    _check_above(0, **above_zero)


def _check_above(bound: int, **settings: float) -> None:
    for name, value in settings.items():
        if not value > bound:
            raise InputError(f"scheduler.admission.{name} is {value:g}, but has to be above {bound}")
