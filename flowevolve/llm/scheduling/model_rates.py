"""The rate at which a model may be asked, learnt from its server's headers and refusals. Pure: time is an argument."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf

from flowevolve.llm.scheduling.rate_headers import Allowance, LimitKind

TOLERATED = 0.15
"""Refusals allowed for each request sent, as some servers refuse a few at random, however slowly they are asked."""
MOST_TOLERATED = 5.0
"""The most allowed refusals that can accumulate: more in a row are a storm, however many requests went before."""
TOLERATED_AFTER_STORM = 1.0
"""Refusals allowed right after a storm, as a single one may be chance."""
LEAST_PAUSE = 1.0
"""The seconds to pause after a refusal that does not say how long to wait."""
CUT = 0.5
"""The factor by which a storm of refusals cuts the rate."""
FIRST_RATE = 1.0
"""The least rate after the first storm, in requests per second, as little is known by then."""
LEAST_RATE = 0.2
"""The least rate at any time, in requests per second, so that a server's recovery is noticed."""
QUICK_STEP = 0.1
"""What an answer adds to the rate while it is below the threshold (see `ModelRates`), in requests per second."""
STEADY_STEP = 0.02
"""What an answer adds above the threshold, in requests per second, so that the rate grows by 2 % in a second."""
STEADY_PART = 0.005
"""The most an answer adds above the threshold, as a fraction of the rate: at low rates effects take longer to show."""
SEEN_SECONDS = 10.0
"""The time over which the rate before the first storm is measured."""


@dataclass(slots=True)
class Bucket:
    """A token bucket. Its level may be negative, as the tokens that a request uses are known only afterwards."""

    rate: float
    """The refill per second."""
    capacity: float
    level: float
    updated: float
    """The time, in seconds, that the level was computed for."""

    @classmethod
    def per_minute(cls, amount: float, now: float) -> Bucket:
        """A bucket that refills by ``amount`` per minute and holds one second's worth, to spread requests evenly."""
        capacity = max(1.0, amount / 60)
        return cls(amount / 60, capacity, capacity, now)

    def wait(self, now: float, amount: float) -> float:
        """The seconds until it holds ``amount``, or is full if it can't hold that; 0 if it does already."""
        self.fill(now)
        lacking = min(amount, self.capacity) - self.level
        if lacking <= 1e-6 * self.capacity:  # less is rounding, and would be waited for again and again
            return 0.0
        return lacking / self.rate

    def take(self, amount: float) -> None:
        self.level = min(self.capacity, self.level - amount)

    def fill(self, now: float) -> None:
        """Add the refill since the last update."""
        if now > self.updated:
            self.level = min(self.capacity, self.level + (now - self.updated) * self.rate)
            self.updated = now


@dataclass(slots=True)
class SentRequest:
    """A sent request: its time, its estimated tokens, the refusals it allowed (at most `TOLERATED`), the number of
    storms before it, and the totals of requests and tokens sent up to it.
    """

    at: float
    tokens: float
    tolerated: float
    storms: int
    requests_taken: float
    tokens_taken: float

    def taken(self, kind: LimitKind) -> float:
        return self.requests_taken if kind == "requests" else self.tokens_taken


@dataclass(slots=True)
class ModelRates:
    """The rate limits of one model: configured ones, those in its server's headers, and one learnt from refusals.

    Headers give a limit, what is left of it and when it is full again. They describe some moment while the request was
    in flight, so a bucket's level is only clipped to the range that this leaves possible.

    A single refusal (status 429) only makes its own request wait and be sent again. A storm of refusals pauses the
    model for as long as the server asks. From the first storm on there is also an adaptive rate of requests, which is
    cut at each storm and grows with each answer: a multiplicative decrease, with slow start below a threshold (the rate
    after the last cut; infinite until the second storm), as in TCP's congestion control (RFC 5681, section 3.1).
    Refusals of requests that were sent before the last cut belong to the same storm.

    A storm is detected by a cumulative sum test (Page, "Continuous inspection schemes", Biometrika 41, 1954): each
    request sent adds `TOLERATED` allowed refusals, each refusal uses one up, and a storm begins when none is left. The
    test counts requests sent and not answers, since refusals come at once and answers much later.
    """

    configured: dict[LimitKind, Bucket] = field(default_factory=dict)
    longest_pause: float = inf
    """The longest pause in seconds, whatever the server asks for."""
    learnt: dict[LimitKind, Bucket] = field(default_factory=dict)
    paused_at: float = -inf
    paused_until: float = -inf
    storms: int = 0
    _taken: dict[LimitKind, float] = field(default_factory=lambda: {"requests": 0.0, "tokens": 0.0})
    _adaptive: Bucket | None = None
    _threshold: float = inf
    _cut_at: float = -inf
    _answered_since_cut: bool = False
    """Whether a request that was sent after the last cut was answered."""
    _tolerance: float = 0.0
    """The allowed refusals left; none before the first request."""
    _first_sent: float = inf
    _answers: deque[float] = field(default_factory=lambda: deque(maxlen=1024))

    @property
    def free(self) -> bool:
        """Whether there is no limit so far."""
        return self._adaptive is None and not self.learnt and not self.configured

    @property
    def counts_tokens(self) -> bool:
        """Whether there is a limit on tokens."""
        return "tokens" in self.configured or "tokens" in self.learnt

    def wait(self, now: float, tokens: float, waited: float = 0.0) -> float:
        """The seconds until a request that uses ``tokens`` may be sent; 0: now.

        ``waited`` is how many seconds it has been the next request: the headers' limits are ignored after
        `longest_pause`.
        """
        if self.free:
            return 0.0
        amounts: dict[LimitKind, float] = {"requests": 1.0, "tokens": tokens}
        learnt = max((bucket.wait(now, amounts[kind]) for kind, bucket in self.learnt.items()), default=0.0)
        configured = max((bucket.wait(now, amounts[kind]) for kind, bucket in self.configured.items()), default=0.0)
        adaptive = self._adaptive.wait(now, 1.0) if self._adaptive is not None else 0.0
        return max(0.0, self.paused_until - now, min(learnt, self.longest_pause - waited), configured, adaptive)

    def uncounted_wait(self, began: float, now: float) -> float:
        """The seconds of a wait that don't count as silence of the server, and so don't use up the call's patience.

        These are all of them, unless the server has only refused requests since the last cut. Then they are only those
        that fall into the last pause.
        """
        if self._cut_at == -inf or (self._answers and self._answers[-1] > self._cut_at):
            return now - began
        return max(0.0, min(now, self.paused_until) - max(began, self.paused_at))

    def take(self, now: float, tokens: float) -> SentRequest:
        """Count a request that is about to be sent."""
        tolerated = min(TOLERATED, MOST_TOLERATED - self._tolerance)
        self._tolerance += tolerated
        self._take("requests", 1.0)
        if self._adaptive is not None:
            self._adaptive.take(1.0)
        if tokens:
            self._take("tokens", tokens)
        if self._first_sent == inf:
            self._first_sent = now
        return SentRequest(now, tokens, tolerated, self.storms, self._taken["requests"], self._taken["tokens"])

    def give_back(self, sent: SentRequest) -> None:
        """Take back a request that was not sent after all."""
        if sent.storms == self.storms:  # a storm since then has set both anew
            self._tolerance = max(0.0, self._tolerance - sent.tolerated)
            if self._adaptive is not None:
                self._adaptive.take(-1.0)
        self._take("requests", -1.0)
        self._take("tokens", -sent.tokens)

    def answered(self, sent: SentRequest, now: float, tokens: int) -> None:
        """Learn from an answer to a request, which used ``tokens``."""
        self._take("tokens", tokens - sent.tokens)
        self._answers.append(now)
        self._answered_since_cut |= sent.at > self._cut_at
        adaptive = self._adaptive
        # An answer shows that the server bears the rate only if the rate is fully used.
        if adaptive is not None and adaptive.wait(now, 1.0) > 0:
            quick = adaptive.rate < self._threshold
            adaptive.rate += QUICK_STEP if quick else min(STEADY_STEP, STEADY_PART * adaptive.rate)

    def note_headers(self, sent: SentRequest, now: float, allowances: dict[LimitKind, Allowance]) -> None:
        """Learn from the limits in the headers of an answer or a refusal."""
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
        """Learn from a refusal (429); returns whether it begins a storm."""
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
        """The lowest limit on requests in force; None if there is none."""
        buckets = [self.configured.get("requests"), self.learnt.get("requests"), self._adaptive]
        return min((60 * bucket.rate for bucket in buckets if bucket is not None), default=None)

    @property
    def tokens_per_minute(self) -> float | None:
        """The lowest limit on tokens in force; None if there is none."""
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
        # If nothing sent since the last cut was answered, the threshold stays: the new rate was never tried.
        if self._adaptive is not None and self._answered_since_cut:
            self._threshold = rate
        self._adaptive = Bucket(rate, 1.0, 0.0, now)
        self._cut_at = now
        self._answered_since_cut = False
        self._tolerance = TOLERATED_AFTER_STORM
        self.storms += 1

    def _seen_rate(self, now: float) -> float:
        """Answers per second in the last `SEEN_SECONDS`."""
        seconds = min(SEEN_SECONDS, max(1.0, now - self._first_sent))
        return sum(at > now - seconds for at in self._answers) / seconds

    def _take(self, kind: LimitKind, amount: float) -> None:
        """Take an amount from all buckets of a kind but the adaptive one; a negative one is given back."""
        self._taken[kind] += amount
        for buckets in (self.configured, self.learnt):
            if kind in buckets:
                buckets[kind].take(amount)
