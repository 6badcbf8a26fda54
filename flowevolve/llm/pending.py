"""A call under way, and the backend it goes to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Generic, Protocol, runtime_checkable

from flowevolve.clock import now
from flowevolve.llm.calls import CallScope, Charge, no_charge
from flowevolve.llm.hedging import Hedgeable, Hedging
from flowevolve.llm.lengths import Work
from flowevolve.llm.line import Ask
from flowevolve.llm.role import Role
from flowevolve.llm.types import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    R,
    Transport,
    Usage,
    embedder,
)
from flowevolve.llm.usage import embedding_filled_in, filled_in


@runtime_checkable
class Addressed(Protocol):
    """A transport that can say where its backend is."""

    @property
    def base_url(self) -> str: ...


@runtime_checkable
class Identified(Protocol):
    """A transport whose address does not say all that its replies depend on."""

    @property
    def identity(self) -> str: ...


LATE_SECONDS = 5.0
"""Whoever is woken so much later than asked was not running: the machine slept, or the process was stopped."""


class Backend:
    """A transport, when it last answered any call, and when this process was last found to have slept."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.where = transport.base_url if isinstance(transport, Addressed) else type(transport).__name__
        self.identity = transport.identity if isinstance(transport, Identified) else self.where
        self.answered = -inf
        self.lost_in_a_row = 0
        """Calls given up without an answer since the last that was answered."""
        self.woke = -inf

    def note_end(self, due: float, time: float) -> None:
        """Told when a wait ended that was to end by ``due``: nothing is known of the backend while we slept."""
        if time - due > LATE_SECONDS:
            self.woke = time


@dataclass(slots=True)
class PendingCall(Generic[R]):
    """A call under way."""

    role: str
    scope: CallScope
    request: ChatRequest | EmbedRequest
    settings: Role
    backend: Backend
    queued: float
    charge: Charge = no_charge
    started: float = 0.0
    sent: float = 0.0
    """When the last request of this attempt was; there may be a second one."""
    attempts: int = 0
    first_failure: float | None = None
    failures: dict[type[LLMError], int] = field(default_factory=dict)
    lost: Usage = field(default_factory=Usage)
    """What failed attempts are paid for, as far as the server said it."""
    work: Work = field(init=False)

    def __post_init__(self) -> None:
        self.work = Work.of(self.role, self.scope.stage, self.scope.item)

    async def send(self, ask: Ask, remaining: int, hedging: Hedging | None) -> R:
        """Make one attempt; ``remaining`` requests of its group wait or are in flight.

        Raises:
            LLMError: as `Transport.chat`.
        """
        raise NotImplementedError

    def excuse(self, seconds: float) -> None:
        """So much of the last wait was no silence of the backend's."""
        if seconds and self.first_failure is not None:
            self.first_failure = min(self.started, max(self.first_failure, self.backend.answered) + seconds)

    def note_failure(self, error: LLMError, time: float) -> float:
        """Count it; returns the `silence` then."""
        self.backend.note_end(max(self.started, self.sent) + self.settings.timeout_seconds, time)
        self.failures[type(error)] = self.failures.get(type(error), 0) + 1
        self.lost += error.usage
        if self.first_failure is None:
            self.first_failure = time
        return self.silence(time)

    def silence(self, time: float) -> float:
        """For how many seconds the backend has been silent, as far as this call can tell."""
        first_failure = time if self.first_failure is None else self.first_failure
        return time - max(first_failure, self.backend.answered, self.backend.woke)


@dataclass(slots=True)
class PendingChat(PendingCall[ChatReply]):
    request: ChatRequest

    async def send(self, ask: Ask, remaining: int, hedging: Hedging | None) -> ChatReply:
        settings = self.settings
        if settings.send_priority:
            self.request = replace(self.request, priority=server_priority(self.scope.priority, remaining))
        if hedging is None:
            return await self._send()
        return await hedging.first_reply(
            Hedgeable(self.work, ask, self.backend.where, self.request, self._send, settings.gate)
        )

    async def _send(self) -> ChatReply:
        self.sent = now()
        reply = await self.settings.transport.chat(self.request, timeout=self.settings.timeout_seconds)
        return filled_in(self.request, reply)


@dataclass(slots=True)
class PendingEmbed(PendingCall[EmbedReply]):
    request: EmbedRequest

    async def send(self, ask: Ask, remaining: int, hedging: Hedging | None) -> EmbedReply:
        """As for any call; never hedged, as it is short."""
        settings = self.settings
        reply = await embedder(settings.transport).embed(self.request, timeout=settings.timeout_seconds)
        return embedding_filled_in(self.request, reply)


def server_priority(rank: int, remaining: int) -> int:
    """What a server that schedules by priority is told: rank first, then the requests its group has left, up to 999.

    Lower goes first there, too, so requests that wait in the server keep the gate's order.
    """
    return rank * 1000 + min(remaining, 999)
