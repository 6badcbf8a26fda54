"""A server made of recorded calls: the same request gets its recorded reply after its recorded latency, lengthened or
shortened where the record shows that load does that (`flowevolve.sim.load`).

A request that was never recorded gets a stand-in: the recorded reply to a request much like it, drawn by its
seed. What a stand-in says means nothing; how long it takes and what it costs is as good as the likeness.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import heappop, heappush

import anyio

from flowevolve.llm.admission import ServerLoad
from flowevolve.llm.types import ChatReply, ChatRequest, Message, RejectedError, UnreachableError
from flowevolve.sim.load import Span, integrate, learn_slowing, peak

RESOLUTION_SECONDS = 1e-9
"""Ends that lie no further apart are one instant to an event loop; then the order of the record decides."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A finished call. Either ``reply`` or ``error`` is set; times are seconds since the run began."""

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
class Answer:
    """What came of a call. ``number`` counts calls in the order in which they ended."""

    number: int
    started: float
    idle_seconds: float
    """How long it would have taken on a server with nothing else to do."""
    reply: ChatReply | None
    error: str | None


class Record:
    """The finished calls of a run, given in the order in which they ended, to be looked up by request.

    Their prompts are not kept, only digests. Calls that the run's response cache answered are found, but don't stand in
    for others.
    """

    def __init__(self, calls: Iterable[PastCall]) -> None:
        asked = [
            (_digest([call.model], call.messages), _likenesses(call.role, call.messages), replace(call, messages=()))
            for call in calls
        ]
        spans = [call.span for *_, call in asked]
        self.slowing = learn_slowing(spans)
        self.peak = peak(spans)
        """The most calls that were in flight at once; those that were cancelled are in no record."""
        idle = integrate(spans, lambda in_flight: 1 / (1 + self.slowing * in_flight))
        self._repeated: dict[tuple[bytes, int | None], list[Answer]] = {}
        self._alike: dict[tuple[str, ...], list[Answer]] = {}
        for number, ((what, likenesses, call), idle_seconds) in enumerate(zip(asked, idle, strict=True)):
            answer = Answer(number, call.started, idle_seconds, call.reply, call.error)
            for key in dict.fromkeys([(what, call.seed), (what, None)]):
                self._repeated.setdefault(key, []).append(answer)
            if call.reply is not None and not call.reply.cached:
                for likeness in likenesses:
                    self._alike.setdefault(likeness, []).append(answer)
        for answers in self._repeated.values():
            answers.sort(key=lambda answer: answer.started)

    @property
    def can_stand_in(self) -> bool:
        """Whether there is any call that a server answered."""
        return () in self._alike

    def find(self, request: ChatRequest) -> Answer | None:
        """What came of this request, with the same seed if it was made with it; where there are several, of each in
        turn, as they were begun.
        """
        asked = _digest([request.model], request.messages)
        answers = self._repeated.get((asked, request.seed)) or self._repeated.get((asked, None))
        if answers is None:
            return None
        answers.append(answers.pop(0))
        return answers[-1]

    def stand_in(self, role: str, request: ChatRequest) -> Answer:
        """An answer to a request like this one: the same question to the same role, else one that begins alike, else
        any of the role's, else any; a function of the request.
        """
        answers = next(self._alike[key] for key in _likenesses(role, request.messages) if key in self._alike)
        rng = random.Random(_digest([str(request.seed)], request.messages))
        return rng.choice(answers)


def _likenesses(role: str, messages: Sequence[Message]) -> tuple[tuple[str, ...], ...]:
    """What requests that are alike have in common, most telling first."""
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
    """Answers from a record, in the event loop's time. ``slots`` bounds how many requests it works on at once, first
    come, first served; without it there is no bound.
    """

    def __init__(self, record: Record, models: Sequence[str], slots: int | None = None) -> None:
        self.models = tuple(models)
        self.matched = 0
        """Calls that ended with what was recorded for the same request."""
        self.stand_ins = 0
        """Calls that ended with a stand-in."""
        self._record = record
        self._work = _Work(record.slowing)
        self._slots = None if slots is None else anyio.Semaphore(slots)

    @property
    def peak(self) -> int:
        """The most calls it worked on at once."""
        return self._work.peak

    @property
    def load(self) -> ServerLoad:
        waiting = 0 if self._slots is None else self._slots.statistics().tasks_waiting
        return ServerLoad(self._work.running, waiting)

    async def answer(self, role: str, request: ChatRequest) -> ChatReply:
        """Raises:
        RejectedError: if the recorded call failed, however it did.
        """
        found = self._record.find(request)
        answer = self._record.stand_in(role, request) if found is None else found
        async with nullcontext() if self._slots is None else self._slots:
            await self._work.do(answer)
        self.matched += found is not None
        self.stand_ins += found is None
        if answer.reply is None:
            raise RejectedError(answer.error or "the recorded call failed")
        return answer.reply


class _Work:
    """The calls a server works on, all slowed alike by how many they are; those that end at the same instant end in the
    order of the record.

    One count of idle seconds serves all: a call that begins at count c ends at c + its own idle seconds, and only
    beginnings, ends and cancellations cost anything.
    """

    def __init__(self, slowing: float) -> None:
        self.running = self.peak = 0
        self._slowing = slowing
        self._line: list[tuple[float, int, int, anyio.Event]] = []
        self._begun = 0
        self._count = self._counted = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def do(self, answer: Answer) -> None:
        """Return when a call like this one, begun now, has ended."""
        self._advance()
        ended = anyio.Event()
        self._begun += 1
        self.running += 1
        self.peak = max(self.peak, self.running)
        heappush(self._line, (self._count + answer.idle_seconds, answer.number, self._begun, ended))
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
        while self._line and self._line[0][-1].is_set():  # cancelled
            heappop(self._line)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._line:
            left = max(0.0, self._line[0][0] - self._count) * (1 + self._slowing * self.running)
            self._timer = asyncio.get_running_loop().call_at(self._counted + left, self._end)

    def _end(self) -> None:
        self._advance()
        over: list[tuple[int, int, anyio.Event]] = []
        while self._line and self._line[0][0] <= self._count + RESOLUTION_SECONDS:
            _, number, begun, ended = heappop(self._line)
            if not ended.is_set():
                over.append((number, begun, ended))
        for _, _, ended in sorted(over, key=lambda call: call[:2]):
            self.running -= 1
            ended.set()
        self._set_timer()


class RecordedBackend:
    """What one role sees of a `RecordedServer`: a `flowevolve.llm.types.Transport` and a
    `flowevolve.llm.admission.Probe`. Its role tells the server which calls could stand in.
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
        """Requests under way, and those that wait for a slot; what else the recorded server had to do is not known."""
        return self._server.load

    async def aclose(self) -> None:
        """Nothing to close."""
