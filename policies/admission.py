"""Admission policies: how many requests may be in flight (`flowevolve.llm.scheduling.admission.Admission`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from flowevolve._util.errors import InputError
from flowevolve.llm.scheduling.admission import LimitDecision, LoadSample

CUT = 0.7
"""What is left of the limit when the server turns requests away."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always allows the highest number of requests."""

    def first(self, most: int) -> int:
        return most

    def decide(self, load: LoadSample) -> LimitDecision:
        return LimitDecision(load.most, "fixed")


@dataclass(slots=True)
class Latency:
    """From how fast answers come, for servers that tell nothing of themselves.

    Tokens per second are requests in flight over seconds per token. The limit doubles as long as at least ``gain`` of
    the change comes back as tokens per second, and later grows by ``step``; where a change did not pay, it is taken
    back. Time that calls spend waiting, beyond the least seen, means that the server has a queue: where it is above
    twice ``target`` of the whole, the limit is cut by the surplus, and from ``target`` on it does not grow. Where a cut
    does not take away half of what it should, it was no queue: calls take that long at any limit, and the least is set
    to it. A limit is judged when as many calls were answered under it as are in flight: those before met another queue.
    When the server turns requests away, the limit is cut at once.

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
    """The limit before the last change, and its tokens per second."""
    _answered: int = field(default=0, init=False)
    """Calls since the last change; below zero while those that a cut left over are still in flight."""
    _least_wait: float = field(default=math.inf, init=False)
    _cut_at: float | None = field(default=None, init=False)
    """The share of waiting at the last cut, as long as nothing is known of its effect."""

    def __post_init__(self) -> None:
        _check(self.start, self.least, target=self.target, step=self.step, gain=self.gain)

    def first(self, most: int) -> int:
        return min(most, self.start)

    def decide(self, load: LoadSample) -> LimitDecision:
        if load.refused:
            self._growing, self._before, self._answered, self._cut_at = False, None, 0, None
            return LimitDecision(_cut(load, self.least), "refused")
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
        """The share of the time in flight that calls wait in the server's queue; 0 where it can't be told."""
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
        return LimitDecision(max(self.least, round(load.limit * (1 - waiting + self.target))), "calls wait")

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
        return LimitDecision(min(load.most, max(load.limit + 1, round(load.limit * self._factor()))), "more pays")

    def _down(self, load: LoadSample) -> LimitDecision:
        lower = max(self.least, min(load.limit - 1, round(load.limit / self._factor())))
        self._growing = False
        return LimitDecision(lower, "more does not pay")


@dataclass(slots=True)
class ServerQueue:
    """Keeps the server's own queue near ``target`` times what it works on: it always has the next request at hand, and
    the rest wait here, where they can still be put in order.

    The limit grows by ``growth`` at each look until the server's queue is first seen, then by what the queue lacks. A
    queue longer than twice the target is taken off the limit at once. Where others have requests there, too, it is our
    share of the queue that is taken off, and the limit grows as at first when the queue is gone. A queue of up to twice
    the target is then shared: at each look the limit loses its share of what is over the target and wins a quarter of
    the target, so that runs that begin with unequal limits come to like ones. As long as the server says nothing of
    itself, the limit goes by `Latency`.

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
        _check(self.start, self.least, target=self.target, growth=self.growth - 1)
        self._by_latency = Latency(self.target, self.start, self.least)

    def first(self, most: int) -> int:
        return min(most, self.start)

    def decide(self, load: LoadSample) -> LimitDecision:
        if load.server is None:
            return self._by_latency.decide(load)
        if load.refused:
            self._growing = False
            return LimitDecision(_cut(load, self.least), "refused")
        wanted = max(1, round(self.target * load.server.running))
        excess = load.server.waiting - wanted
        total = max(load.in_flight, load.server.running + load.server.waiting)
        shared = total - load.in_flight > wanted
        ours = round(excess * load.in_flight / max(1, total))
        if excess > wanted:
            self._growing = shared
            return LimitDecision(max(self.least, min(load.limit, load.in_flight - ours)), "server queue too long")
        if not load.used_up or (excess >= 0 and not shared):
            return LimitDecision(load.limit, "as wanted")
        if excess >= 0:
            return LimitDecision(max(self.least, min(load.most, load.limit - ours + max(1, wanted // 4))), "shared")
        if self._growing and load.server.waiting == 0:
            return LimitDecision(
                min(load.most, max(load.limit + 1, int(load.limit * self.growth))), "server queue empty"
            )
        return LimitDecision(min(load.most, load.limit - excess), "server queue short")


def _cut(load: LoadSample, least: int) -> int:
    return max(least, min(load.limit, int(CUT * min(load.limit, load.in_flight))))


def _check(start: int, least: int, **above_zero: float) -> None:
    if not 1 <= least <= start:
        raise InputError(f"scheduler.admission: need 1 <= least ({least}) <= start ({start})")
    for name, value in above_zero.items():
        if not value > 0:
            raise InputError(f"scheduler.admission.{name}: is too small")
