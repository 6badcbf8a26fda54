"""A server that fails as it is told, and a look at what a call leaves behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from flowevolve.core.model import (
    ChatRequest,
    LLMError,
    Message,
    OverloadedError,
    ServerError,
    UnreachableError,
)
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.faults import Fault, Faults
from flowevolve.sim.profiles import PROFILES

RAISES: dict[Fault, type[LLMError] | None] = {
    "overloaded": OverloadedError,
    "retry_after": OverloadedError,
    "unavailable": OverloadedError,
    "error": ServerError,
    "redirect": UnreachableError,
    "reset": UnreachableError,
    "cut": UnreachableError,
    "hang": UnreachableError,
    "stall": UnreachableError,
    "trickle": UnreachableError,
    "malformed": ServerError,
    "empty": ServerError,
    "html": ServerError,
    "no_usage": None,
}
"""What a transport makes of each fault; None: a reply."""


class Echo:
    """A world that repeats what it was told."""

    def reply(self, request: ChatRequest, rng: random.Random) -> str:
        return request.messages[-1].content


class Script(Faults):
    """These faults one after another, and none after them."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(0.0)
        self._left = list(faults)

    def stop(self) -> None:
        """Play no more: what a busy server has not come to by now never comes."""
        self._left.clear()

    def draw(self, request: int) -> Fault | None:
        return self._left.pop(0) if self._left else None


def failing(faults: Faults) -> SimBackend:
    return SimBackend(Echo(), PROFILES["instant"], model="m", faults=faults)


def said(text: str) -> ChatRequest:
    return ChatRequest("m", (Message("user", text),))


@asynccontextmanager
async def leaving_nothing() -> AsyncGenerator[None]:
    """Fails if tasks are left that were not there before: every call, timer and open connection of a server has one."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before
    if left:
        await asyncio.wait(left, timeout=60)
    assert [task for task in left if not task.done()] == []
