"""How fast a model may be asked, learnt from what its server says and does. Pure: told the time, it never waits."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf

from flowevolve.llm.rate_headers import Allowance, LimitKind

TOLERATED = 0.15
"""Refusals that each request sent makes up for: some servers refuse a few at random, however slowly they are asked."""
MOST_TOLERATED = 5.0
"""More than so many do not add up: refusals one upon the other are a storm, whatever was sent before."""
TOLERATED_AFTER_STORM = 1.0
"""Refusals that are tolerated from the start after a storm: a single one may be chance."""
LEAST_PAUSE = 1.0
"""Seconds nobody asks a model that turned a request away and did not say for how long."""
CUT = 0.5
"""What is left of the rate after a storm of refusals."""
FIRST_RATE = 1.0
"""Requests per second that the first storm leaves at least: little is known yet."""
LEAST_RATE = 0.2
"""Requests per second that are always allowed, so that a server's recovery is noticed."""
QUICK_STEP = 0.1
"""What an answer adds to the rate, in requests per second, below the rate of the last storm."""
STEADY_STEP = 0.02
"""What an answer adds above it, in requests per second: at any rate, the rate grows by this part of it in a second."""
STEADY_PART = 0.005
"""What an answer adds above it at most, as a part of the rate: at low rates it takes longer to see what it did."""
SEEN_SECONDS = 10.0
"""The rate before the first storm is taken over so long."""


@dataclass(slots=True)
class Bucket:
    """A token bucket; its level may be negative, as what was used is known only in the end."""

    rate: float
    """What flows in per second."""
    capacity: float
    level: float
    updated: float
    """The level is that of this time."""

    @classmethod
    def per_minute(cls, amount: float, now: float) -> Bucket:
        """Holds one second's worth: over any minute hardly more than ``amount``, and evenly."""
        capacity = max(1.0, amount / 60)
        return cls(amount / 60, capacity, capacity, now)

    def wait(self, now: float, amount: float) -> float:
        """Seconds until so much, or all that it can hold, is there; 0 if it is."""
        self.fill(now)
        lacking = min(amount, self.capacity) - self.level
        if lacking <= 1e-6 * self.capacity:  # less is rounding, and would be waited for again and again
            return 0.0
        return lacking / self.rate

    def take(self, amount: float) -> None:
        self.level = min(self.capacity, self.level - amount)

    def fill(self, now: float) -> None:
        """Let in what has flowed since."""
        if now > self.updated:
            self.level = min(self.capacity, self.level + (now - self.updated) * self.rate)
            self.updated = now


@dataclass(slots=True)
class SentRequest:
    """A request on its way: when it was sent, the tokens it is taken to need, and what had been taken with it."""

    at: float
    tokens: float
    requests_taken: float
    tokens_taken: float

    def taken(self, kind: LimitKind) -> float:
        return self.requests_taken if kind == "requests" else self.tokens_taken


@dataclass(slots=True)
class ModelRates:
    """The limits of one model: those configured, those its server's headers tell, and what refusals teach.

    Headers tell a limit, what is left of it and when it is whole again. They tell it as of some moment while the
    request was under way, so the level is only held between the least and the most that this leaves possible.

    A refusal (429) by itself is only its own request's trouble, which waits and is sent again. A storm of them pauses
    the model for as long as the server asks, and from the first one on there is also a rate of requests, cut at every
    storm and growing with the answers: a multiplicative decrease, and slow start below the rate of the last storm, as
    TCP has them for its window (RFC 5681, section 3.1). What was sent before the last cut and is refused after it
    belongs to the same storm.

    It is a storm when refusals outrun requests: each request sent makes up for `TOLERATED` of one, and once they are
    used up the next one starts it. This is a cumulative sum test (Page, "Continuous inspection schemes", Biometrika
    41, 1954). It goes by requests sent, not by outcomes, since refusals come at once and answers much later.
    """

    configured: dict[LimitKind, Bucket] = field(default_factory=dict)
    longest_pause: float = inf
    """No pause is longer, whatever the server asks for: it is asked again then."""
    learnt: dict[LimitKind, Bucket] = field(default_factory=dict)
    paused_at: float = -inf
    paused_until: float = -inf
    storms: int = 0
    _taken: dict[LimitKind, float] = field(default_factory=lambda: {"requests": 0.0, "tokens": 0.0})
    _adaptive: Bucket | None = None
    _threshold: float = inf
    _cut_at: float = -inf
    _answered_since_cut: bool = False
    """Whether anything was that was sent since."""
    _tolerance: float = 0.0
    """Refusals that may come before there is a storm; at first none, as nothing was sent."""
    _first_sent: float = inf
    _answers: deque[float] = field(default_factory=lambda: deque(maxlen=1024))

    @property
    def free(self) -> bool:
        """Whether nothing limits it so far."""
        return self._adaptive is None and not self.learnt and not self.configured

    @property
    def counts_tokens(self) -> bool:
        """Whether anything depends on how many tokens a request takes."""
        return "tokens" in self.configured or "tokens" in self.learnt

    def wait(self, now: float, tokens: float, waited: float = 0.0) -> float:
        """Seconds until a request that takes so many tokens may be sent; 0: now.

        ``waited`` is for how long it has been next: what headers say is not believed for longer than the longest pause.
        """
        if self.free:
            return 0.0
        amounts: dict[LimitKind, float] = {"requests": 1.0, "tokens": tokens}
        told = max((bucket.wait(now, amounts[kind]) for kind, bucket in self.learnt.items()), default=0.0)
        ours = max((bucket.wait(now, amounts[kind]) for kind, bucket in self.configured.items()), default=0.0)
        adaptive = self._adaptive.wait(now, 1.0) if self._adaptive is not None else 0.0
        return max(0.0, self.paused_until - now, min(told, self.longest_pause - waited), ours, adaptive)

    def uncounted_wait(self, began: float, now: float) -> float:
        """The seconds of a wait that are no silence of the server's: all of them, or, where it did nothing but refuse
        since its last answer, those of the last pause.
        """
        if self._cut_at == -inf or (self._answers and self._answers[-1] > self._cut_at):
            return now - began
        return max(0.0, min(now, self.paused_until) - max(began, self.paused_at))

    def take(self, now: float, tokens: float) -> SentRequest:
        """A request is to be sent."""
        self._tolerance = min(MOST_TOLERATED, self._tolerance + TOLERATED)
        self._take("requests", 1.0)
        if tokens:
            self._take("tokens", tokens)
        if self._first_sent == inf:
            self._first_sent = now
        return SentRequest(now, tokens, self._taken["requests"], self._taken["tokens"])

    def give_back(self, sent: SentRequest) -> None:
        """It was not sent after all."""
        self._tolerance = max(0.0, self._tolerance - TOLERATED)
        self._take("requests", -1.0)
        self._take("tokens", -sent.tokens)

    def answered(self, sent: SentRequest, now: float, tokens: int) -> None:
        """It was answered, and took so many tokens."""
        self._take("tokens", tokens - sent.tokens)
        self._answers.append(now)
        self._answered_since_cut |= sent.at > self._cut_at
        adaptive = self._adaptive
        # A rate that is not made use of says nothing of what the server would bear.
        if adaptive is not None and adaptive.wait(now, 1.0) > 0:
            quick = adaptive.rate < self._threshold
            adaptive.rate += QUICK_STEP if quick else min(STEADY_STEP, STEADY_PART * adaptive.rate)

    def note_headers(self, sent: SentRequest, now: float, allowances: dict[LimitKind, Allowance]) -> None:
        """Its answer, or its refusal, had these headers."""
        for kind, allowance in allowances.items():
            most = allowance.remaining
            least = most - max(0.0, self._taken[kind] - sent.taken(kind))
            bucket = self.learnt.get(kind)
            if bucket is None:
                bucket = self.learnt[kind] = Bucket(allowance.limit / 60, allowance.limit, least, now)
            bucket.fill(now)
            bucket.capacity = allowance.limit
            bucket.rate = allowance.per_second or bucket.rate
            bucket.level = max(least, min(bucket.level, most))

    def refused(self, sent: SentRequest, now: float, retry_after: float | None) -> bool:
        """It was turned away with a 429; whether that begins a storm."""
        self._take("tokens", -sent.tokens)
        of_last_storm = sent.at <= self._cut_at
        if not of_last_storm:
            self._tolerance -= 1.0
        begins = self._tolerance < 0
        if begins or (of_last_storm and retry_after is not None):
            self._pause(now, LEAST_PAUSE if retry_after is None else retry_after)
        if begins:
            self._cut(now)
        return begins

    @property
    def requests_per_minute(self) -> float | None:
        """The lowest rate of requests in force; None if there is none."""
        buckets = [self.configured.get("requests"), self.learnt.get("requests"), self._adaptive]
        return min((60 * bucket.rate for bucket in buckets if bucket is not None), default=None)

    @property
    def tokens_per_minute(self) -> float | None:
        """The same for tokens."""
        buckets = [self.configured.get("tokens"), self.learnt.get("tokens")]
        return min((60 * bucket.rate for bucket in buckets if bucket is not None), default=None)

    def _pause(self, now: float, seconds: float) -> None:
        until = now + min(seconds, self.longest_pause)
        if until > self.paused_until:
            self.paused_at, self.paused_until = now, until

    def _cut(self, now: float) -> None:
        if self._adaptive is None:
            rate = max(FIRST_RATE, CUT * self._seen_rate(now))
        else:
            rate = max(LEAST_RATE, CUT * self._adaptive.rate)
        # Where nothing sent since the last cut was answered, the rate of that storm is still all that is known.
        if self._adaptive is not None and self._answered_since_cut:
            self._threshold = rate
        self._adaptive = Bucket(rate, 1.0, 0.0, now)
        self._cut_at = now
        self._answered_since_cut = False
        self._tolerance = TOLERATED_AFTER_STORM
        self.storms += 1

    def _seen_rate(self, now: float) -> float:
        """Answers per second."""
        seconds = min(SEEN_SECONDS, max(1.0, now - self._first_sent))
        return sum(at > now - seconds for at in self._answers) / seconds

    def _take(self, kind: LimitKind, amount: float) -> None:
        """From all that limits it; what is negative is given back."""
        self._taken[kind] += amount
        if self.free:
            return
        for buckets in (self.configured, self.learnt):
            if kind in buckets:
                buckets[kind].take(amount)
        if kind == "requests" and self._adaptive is not None:
            self._adaptive.take(amount)
