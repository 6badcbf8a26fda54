"""Runs that are interrupted where one likes, for tests: a journal in memory, and the engine on the virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import anyio

import flowevolve as fe
from flowevolve._util import clock, tasks as concurrency
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    Message,
    RejectedError,
    ServerError,
    Usage,
)
from flowevolve.core.payload_kinds import NotKeptError
from flowevolve.engine.engine import Engine, RunReport
from flowevolve.engine.recovery.recorded_replies import AnsweredCall
from flowevolve.journal.payloads import dump, load
from flowevolve.llm.client.accounting import Spending
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.ensemble import Models
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.client.role import Role
from flowevolve.llm.scheduling.scheduler import Scheduler

Fact = Event | CallRecord


def as_kept(event: Event) -> Event:
    """An event with its attachment as the journal has it; without, where that can't be kept."""
    if event.attachment is None:
        return event
    try:
        return replace(event, attachment=dump(event.attachment, frozenset()))
    except NotKeptError:
        return replace(event, attachment=None)


def asked(call: CallRecord) -> tuple[Message, ...]:
    assert isinstance(call.request, ChatRequest)
    return call.request.messages


def answer(call: CallRecord) -> ChatReply | EmbedReply | LLMError | None:
    """What a call brought for good; None if it is to be made again."""
    if call.reply is not None:
        return call.reply
    kind, _, message = (call.error or "").partition(": ")
    failure = {"RejectedError": RejectedError, "ServerError": ServerError}.get(kind)
    return None if failure is None else failure(message, usage=call.failed_usage, model=call.request.model)


@dataclass
class Memory:
    """A `flowevolve.engine.recovery.recovery.History` in memory, ended where one likes. Events are `as_kept`."""

    told: Sequence[Fact]

    @property
    def last(self) -> Event:
        return [fact for fact in self.told if isinstance(fact, Event)][-1]

    @property
    def begun(self) -> bool:
        return any(event.kind == "phase.ended" for event in self.events())

    def events(self) -> Iterator[Event]:
        return (Event(fact.seq, fact.time, fact.kind, fact.data) for fact in self.told if isinstance(fact, Event))

    def payload(self, name: str) -> object:
        for fact in self.told:
            if isinstance(fact, Event) and isinstance(fact.attachment, bytes) and fact.attached_to == name:
                return load(fact.attachment, {})
        raise KeyError(name)

    def spent(self) -> Iterable[Spending]:
        return ()

    def calls(self, interrupted_work: Collection[tuple[str, str]]) -> Iterable[AnsweredCall]:
        for fact in self.told:
            if isinstance(fact, CallRecord) and (fact.scope.stage, fact.scope.work.item) in interrupted_work:
                scope, request, reply = fact.scope, fact.request, answer(fact)
                if reply is not None:
                    said = request.texts if isinstance(request, EmbedRequest) else request.messages
                    yield AnsweredCall(scope.stage, scope.work, scope.index, said, reply)

    def close(self) -> None:
        pass

    def facts(self) -> Sequence[Fact]:
        return self.told


def evolve(
    algorithm: fe.Algorithm,
    before: Sequence[Fact] = (),
    *,
    roles: Callable[[], Mapping[str, Models]] = dict,
    beside: Callable[[Engine], Coroutine[Any, Any, None]] | None = None,
    **options: Any,
) -> tuple[RunReport, list[Fact]]:
    """Run, or go on after ``before``; returns the report and all facts, those before included.

    ``beside`` goes on beside the run, until that ends.
    """
    facts = list(before)

    async def go() -> RunReport:
        client = LLMClient(roles(), Scheduler(8), RetryPolicy(), 0, facts.append)
        engine = Engine(
            algorithm,
            llm=client,
            sinks=[lambda event: facts.append(as_kept(event))],
            history=Memory(tuple(before)) if before else None,
            **{"budget": fe.Budget(hours=1), "max_in_flight": 4, "drain_seconds": 1, **options},
        )
        async with _in_use(algorithm), concurrency.beside() as tasks:
            if beside is not None:
                tasks.start_soon(beside, engine)
            return await engine.run()

    return clock.run(go, clock="virtual"), facts


def _in_use(algorithm: fe.Algorithm) -> AbstractAsyncContextManager[object]:
    """As `flowevolve.run` enters algorithms."""
    return algorithm if isinstance(algorithm, AbstractAsyncContextManager) else nullcontext()


def events_of(facts: Sequence[Fact], kind: str) -> list[Event]:
    return [fact for fact in facts if isinstance(fact, Event) and fact.kind == kind]


class Echo:
    """A `flowevolve.core.model.Transport` that takes two seconds and says what it was asked, in capitals.

    Its vectors are the lengths of the texts.
    """

    backend = "echo"

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        await anyio.sleep(2)
        return ChatReply(request.messages[-1].content.upper(), Usage(100, 10))

    async def embed(self, request: EmbedRequest, *, timeout: float | None) -> EmbedReply:
        await anyio.sleep(2)
        return EmbedReply(tuple((float(len(text)),) for text in request.texts), Usage(10 * len(request.texts)))

    async def models(self) -> tuple[str, ...]:
        return ("echo",)

    async def aclose(self) -> None:
        pass


def echo() -> Mapping[str, Models]:
    """One role, ``task``."""
    return {"task": Role(Echo(), "echo")}
