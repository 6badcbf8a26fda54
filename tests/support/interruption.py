"""Runs that are interrupted where one likes, for tests: a journal in memory, and the engine on the virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import anyio

import flowevolve as fe
from bench.simtest.record import Fact, Memory, as_kept
from flowevolve._util import clock, tasks as concurrency
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    Message,
    Usage,
)
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.client.role import Role
from flowevolve.llm.scheduling.scheduler import Scheduler

__all__ = ["Echo", "Fact", "Memory", "as_kept", "asked", "echo", "events_of", "evolve"]


def asked(call: CallRecord) -> tuple[Message, ...]:
    assert isinstance(call.request, ChatRequest)
    return call.request.messages


def evolve(
    algorithm: fe.Algorithm,
    before: Sequence[Fact] = (),
    *,
    roles: Callable[[], Mapping[str, Role]] = dict,
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


def echo() -> Mapping[str, Role]:
    """One role, ``task``."""
    return {"task": Model(Echo(), "echo")}
