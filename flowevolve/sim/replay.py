"""A server that answers from recorded calls: the same request gets its recorded reply after its recorded latency.

Where the record shows that load slows the server down (`flowevolve.sim.load_model`), latencies are lengthened or
shortened by the load of the replay. A request that was never recorded gets a stand-in: the recorded reply to a similar
request, drawn by the request's seed. The text of a stand-in means nothing; its latency and cost are as good as the
similarity.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import heappop, heappush

import anyio

from flowevolve._util.clock import running_loop
from flowevolve.core.model import ChatReply, ChatRequest, Message, RejectedError, UnreachableError
from flowevolve.llm.scheduling.admission import ServerLoad
from flowevolve.sim.load_model import Span, integrate, learn_slowing, peak

RESOLUTION_SECONDS = 1e-9
"""Calls whose ends lie no further apart than this end at the same instant, in the order of the record."""


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A finished call of the recorded run. Either ``reply`` or ``error`` is set; times are seconds since it began."""

    role: str
    model: str
    messages: Sequence[Message]
    seed: int | None
    reply: ChatReply | None
    error: str | None
    started: float
    finished: float

    @property
    def span(self) -> Span:
        return Span(self.started, self.finished, None if self.reply is None else self.reply.usage.completion_tokens)


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """The outcome of a recorded call. ``number`` counts the calls in the order in which they ended."""

    number: int
    started: float
    idle_seconds: float
    """How long the call would have taken on a server with nothing else to do."""
    reply: ChatReply | None
    error: str | None


class ReplayableCalls:
    """The finished calls of a run, to be looked up by request. They are given in the order in which they ended.

    Only digests of their prompts are kept. Calls that the run's response cache answered can be looked up, but never
    stand in for other requests.
    """

    def __init__(self, calls: Iterable[ReplayedCall]) -> None:
        # The prompts of a run can be many megabytes: only what is derived from them is kept from here on.
        recorded = [
            (replace(call, messages=()), _digest([call.model], call.messages), _similarities(call.role, call.messages))
            for call in calls
        ]
        spans = [call.span for call, *_ in recorded]
        self.slowing = learn_slowing(spans)
        self.peak = peak(spans)
        """The most calls that were in flight at once. Cancelled calls are not counted, as no record has them."""
        idle = integrate(spans, lambda in_flight: 1 / (1 + self.slowing * in_flight))
        self._by_request: defaultdict[tuple[bytes, int | None], list[RecordedOutcome]] = defaultdict(list)
        self._by_similarity: defaultdict[tuple[str, ...], list[RecordedOutcome]] = defaultdict(list)
        for number, ((call, digest, similarities), idle_seconds) in enumerate(zip(recorded, idle, strict=True)):
            outcome = RecordedOutcome(number, call.started, idle_seconds, call.reply, call.error)
            for seed in {call.seed, None}:
                self._by_request[digest, seed].append(outcome)
            if call.reply is not None and not call.reply.cached:
                for similarity in similarities:
                    self._by_similarity[similarity].append(outcome)
        for outcomes in self._by_request.values():
            outcomes.sort(key=lambda outcome: outcome.started)

    @property
    def can_stand_in(self) -> bool:
        """Whether there is any call that a server, not the response cache, answered."""
        return () in self._by_similarity

    def find(self, request: ChatRequest) -> RecordedOutcome | None:
        """Return the recorded outcome of this request, or None if it was never made.

        Calls with the request's seed are preferred, if there are any. If the request was made several times, their
        outcomes are returned in turn, in the order in which the calls began.
        """
        digest = _digest([request.model], request.messages)
        outcomes = self._by_request.get((digest, request.seed)) or self._by_request.get((digest, None))
        if outcomes is None:
            return None
        outcomes.append(outcomes.pop(0))
        return outcomes[-1]

    def stand_in(self, role: str, request: ChatRequest) -> RecordedOutcome:
        """Return the recorded outcome of a request like this one, which depends on nothing but the request.

        It is drawn from the calls of the same role with the same last message, else from those of the role whose first
        line is the same, else from all of the role's calls, else from all calls.
        """
        similar = next(key for key in _similarities(role, request.messages) if key in self._by_similarity)
        rng = random.Random(_digest([str(request.seed)], request.messages))
        return rng.choice(self._by_similarity[similar])


def _similarities(role: str, messages: Sequence[Message]) -> tuple[tuple[str, ...], ...]:
    """Keys that similar requests share, from the closest similarity to none at all."""
    opening = messages[0].content.lstrip().partition("\n")[0]
    return (role, "asks", _digest([], messages[-1:]).hex()), (role, "begins", opening), (role,), ()


def _digest(about: Iterable[str], messages: Sequence[Message]) -> bytes:
    texts = [*about, *(text for message in messages for text in (message.role, message.content))]
    digest = blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    return digest.digest()


class RecordedServer:
    """Answers from a record, in the event loop's time.

    ``capacity`` bounds how many requests it works on at once, in the order of their arrival; None sets no bound.
    """

    def __init__(self, record: ReplayableCalls, models: Sequence[str], capacity: int | None = None) -> None:
        self.models = tuple(models)
        self.matched = 0
        """How many calls got what was recorded for the same request."""
        self.stand_ins = 0
        """How many calls got a stand-in."""
        self._record = record
        self._calls = _CallsInFlight(record.slowing)
        self._permits = None if capacity is None else anyio.Semaphore(capacity)

    @property
    def peak(self) -> int:
        """The most calls that the server worked on at once."""
        return self._calls.peak

    @property
    def load(self) -> ServerLoad:
        waiting = 0 if self._permits is None else self._permits.statistics().tasks_waiting
        return ServerLoad(self._calls.running, waiting)

    async def answer(self, role: str, request: ChatRequest) -> ChatReply:
        """Return the recorded reply, or a stand-in's, after its latency.

        Raises:
            RejectedError: if the recorded call failed, whatever its error was.
        """
        found = self._record.find(request)
        answer = self._record.stand_in(role, request) if found is None else found
        async with nullcontext() if self._permits is None else self._permits:
            await self._calls.run(answer)
        self.matched += found is not None
        self.stand_ins += found is None
        if answer.reply is None:
            raise RejectedError(answer.error or "the recorded call failed")
        return answer.reply


class _CallsInFlight:
    """The calls in flight at a server, all slowed down equally by their number.

    A call's idle seconds are the time that it would take on an idle server. One counter of idle seconds runs for all
    calls, and a call ends when the counter has advanced by its idle seconds. It is brought up to date only when a call
    begins, ends or is cancelled. Calls that end at the same instant end in the order of the record.
    """

    def __init__(self, slowing: float) -> None:
        self.running = self.peak = 0
        self._slowing = slowing
        self._queue: list[tuple[float, int, int, anyio.Event]] = []
        self._begun = 0
        self._count = self._counted = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, answer: RecordedOutcome) -> None:
        """Return when a call with this outcome that begins now would end."""
        self._advance()
        ended = anyio.Event()
        self._begun += 1
        self.running += 1
        self.peak = max(self.peak, self.running)
        heappush(self._queue, (self._count + answer.idle_seconds, answer.number, self._begun, ended))
        self._set_timer()
        try:
            await ended.wait()
        except BaseException:
            if not ended.is_set():
                self._advance()
                self.running -= 1
                ended.set()
                self._set_timer()
            raise

    def _advance(self) -> None:
        now = anyio.current_time()
        self._count += (now - self._counted) / (1 + self._slowing * self.running)
        self._counted = now

    def _set_timer(self) -> None:
        # A bare timer, not a task: it only touches this object, and can't fail or outlive its use.
        while self._queue and self._queue[0][-1].is_set():  # cancelled
            heappop(self._queue)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._queue:
            left = max(0.0, self._queue[0][0] - self._count) * (1 + self._slowing * self.running)
            self._timer = running_loop().call_at(self._counted + left, self._end)

    def _end(self) -> None:
        self._advance()
        over: list[tuple[int, int, anyio.Event]] = []
        while self._queue and self._queue[0][0] <= self._count + RESOLUTION_SECONDS:
            _, number, begun, ended = heappop(self._queue)
            if not ended.is_set():
                over.append((number, begun, ended))
        for _, _, ended in sorted(over, key=lambda call: call[:2]):
            self.running -= 1
            ended.set()
        self._set_timer()


class RecordedBackend:
    """One role's access to a `RecordedServer`, as a `flowevolve.core.model.Transport` and a
    `flowevolve.llm.scheduling.admission.Probe`. The server looks for stand-ins among the calls of this role first.
    """

    base_url = "recorded"

    def __init__(self, server: RecordedServer, role: str) -> None:
        self._server = server
        self._role = role

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        try:
            with anyio.fail_after(timeout):
                return await self._server.answer(self._role, request)
        except TimeoutError:
            raise UnreachableError(f"no answer within {timeout:g} s") from None

    async def models(self) -> tuple[str, ...]:
        return self._server.models

    async def load(self) -> ServerLoad | None:
        """Requests in flight and requests that wait. What else the recorded server had to do is not known."""
        return self._server.load

    async def aclose(self) -> None:
        """Nothing to close."""
