"""Hedged requests: a second request for a call that takes unusually long while a whole item waits for it.

These are the deferred hedged requests of Dean and Barroso, "The Tail at Scale" (CACM 56(2), 2013): a second request is
sent once the first has been in flight for longer than the 95th percentile of calls like it, and the first reply wins.
Here the number of second requests is also limited to a share of all calls, and one is only sent when every call that
the item still waits for is overdue.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean

import anyio

from flowevolve._util import clock
from flowevolve._util.tasks import Pulse, as_completed
from flowevolve.core.budget import OverBudgetError
from flowevolve.core.model import ChatReply, ChatRequest
from flowevolve.llm.client.answer_lengths import CallKind
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.request_queue import QueuedRequest
from flowevolve.llm.scheduling.scheduler import Scheduler

QUANTILE = 0.95
MARGIN = 1.1
"""The factor by which a call must exceed the quantile, so that none is hedged where all take equally long."""
MIN_SAMPLES = 20
"""Answered calls of a role at a stage that are needed before any is hedged."""
REMEMBERED = 256
"""The quantile is taken over this many of the most recent calls of a role at a stage."""

_FIRST, _SECOND = 0, 1


@dataclass(slots=True)
class HedgeStats:
    """How many second requests were sent and answered first.

    ``lost_tokens_estimate`` are the tokens of the requests that were cancelled because the other one was answered
    first; no other count includes them. It is an upper estimate: servers don't report how much of a cancelled answer
    they had written, so each counts as if it had been complete.
    """

    sent: int = 0
    won: int = 0
    lost_tokens_estimate: int = 0


@dataclass(frozen=True, slots=True)
class Hedgeable:
    """A call that may be hedged, with what is needed to queue and send it a second time."""

    call_kind: CallKind
    ask: QueuedRequest
    backend: str
    request: ChatRequest
    send: Callable[[], Awaitable[ChatReply]]
    check: Callable[[], None]
    """Raises OverBudgetError if there is nothing left to pay for a second request."""
    own: Scheduler | None = None
    """The concurrency limit of the call's role, if it has one of its own."""


class Hedging:
    """Sends second requests, for at most a ``share`` of all calls, through the same limits as the first ones."""

    def __init__(self, scheduler: Scheduler, limits: Limits, share: float) -> None:
        self.stats = HedgeStats()
        self._scheduler = scheduler
        self._limits = limits
        self._share = share
        self._calls = self._granted = 0
        self._latencies: dict[tuple[str, str], Latencies] = {}
        self._overdue: Counter[str] = Counter()
        self._changed = Pulse()

    async def first_reply(self, call: Hedgeable) -> ChatReply:
        """The reply that comes first: to the request itself, which holds its slot already, or to a second one.

        Raises:
            LLMError: the error of the first request, if neither was answered.
        """
        self._calls += 1
        latencies = self._latencies.setdefault((call.call_kind.role, call.call_kind.stage), Latencies())
        began, expected = clock.now(), call.ask.expected_tokens
        delay = latencies.hedge_after(expected)
        try:
            reply = await (call.send() if delay is None else self._race(call, delay))
        finally:
            self._changed.fire()
        latencies.note(clock.now() - began, expected)
        return reply

    async def _race(self, call: Hedgeable, delay: float) -> ChatReply:
        sent = anyio.Event()

        async def first() -> ChatReply | Exception:
            try:
                return await call.send()
            except Exception as error:  # noqa: BLE001 - raised again by `_settle`
                return error

        async def second() -> ChatReply | Exception:
            await anyio.sleep(delay)
            with self._counted_as_overdue(call.ask.group):
                while not self._may_hedge(call):
                    await self._changed.wait()
                try:
                    return await self._send_second(call, sent)
                except OverBudgetError:
                    await anyio.sleep_forever()  # only the first request is left
                    raise
                except Exception as error:  # noqa: BLE001 - the first request may still be answered
                    return error

        outcomes: dict[int, ChatReply | Exception] = {}
        async with aclosing(as_completed([first, second])) as ended:
            async for index, outcome in ended:
                outcomes[index] = outcome
                if isinstance(outcome, ChatReply) or not sent.is_set():
                    break
        return self._settle(outcomes, hedged=sent.is_set())

    def _settle(self, outcomes: dict[int, ChatReply | Exception], *, hedged: bool) -> ChatReply:
        for index, outcome in outcomes.items():
            if isinstance(outcome, ChatReply):
                self.stats.won += index == _SECOND
                other_was_cancelled = hedged and len(outcomes) == 1
                self.stats.lost_tokens_estimate += outcome.usage.total_tokens if other_was_cancelled else 0
                return outcome
        failed = outcomes[_FIRST]
        assert isinstance(failed, Exception)
        raise failed

    async def _send_second(self, call: Hedgeable, sent: anyio.Event) -> ChatReply:
        # A group of its own, as the size of the item's group says how many calls the item still waits for.
        ask = replace(call.ask, group=f"{call.ask.group}\x1fhedge")
        self._granted += 1
        try:
            async with self._limits.permit(ask, call.backend, call.request, call.own) as permit:
                call.check()
                self.stats.sent += 1
                sent.set()
                return permit.answered(await call.send())
        finally:
            if not sent.is_set():  # another call may use its part of the share
                self._granted -= 1
                self._changed.fire()

    @contextmanager
    def _counted_as_overdue(self, group: str) -> Generator[None]:
        self._overdue[group] += 1
        self._changed.fire()
        try:
            yield
        finally:
            self._overdue[group] -= 1
            if not self._overdue[group]:
                del self._overdue[group]

    def _may_hedge(self, call: Hedgeable) -> bool:
        """Whether all calls left of the call's item are overdue, and a second request is allowed."""
        schedulers = (self._scheduler,) if call.own is None else (self._scheduler, call.own)
        return (
            max(scheduler.remaining(call.ask.group) for scheduler in schedulers) <= self._overdue[call.ask.group]
            and self._granted < self._share * self._calls
            and not self._limits.holds_back(call.backend, call.request.model)
        )


class Latencies:
    """The seconds that recent calls took, with the expected lengths of their answers in tokens."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque(maxlen=REMEMBERED)

    def note(self, seconds: float, expected_tokens: float) -> None:
        self._seen.append((seconds, expected_tokens))

    def hedge_after(self, expected_tokens: float) -> float | None:
        """The seconds after which a call counts as overdue; None while too few calls were seen.

        Longer in proportion for a call whose answer is expected to be longer than the mean.
        """
        if len(self._seen) < MIN_SAMPLES:
            return None
        seconds = sorted(each for each, _ in self._seen)[ceil(QUANTILE * len(self._seen)) - 1]
        expectations = [each for _, each in self._seen if each > 0]
        longer = max(1.0, expected_tokens / fmean(expectations)) if expectations else 1.0
        return MARGIN * seconds * longer
