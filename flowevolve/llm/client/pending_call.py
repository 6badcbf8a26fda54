"""A call in progress, and what is known of the backend that it goes to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Generic, Protocol, runtime_checkable

import anyio

from flowevolve._util.clock import now
from flowevolve._util.errors import BackendRefusedError, BackendUnreachableError
from flowevolve.core.calls import NOBODY, CallRecord, CallScope, Payer
from flowevolve.core.model import (
    NO_USAGE,
    ChatReply,
    ChatRequest,
    CutWhileThinkingError,
    EmbedReply,
    EmbedRequest,
    LLMError,
    OutOfCreditError,
    R,
    RefusedError,
    RejectedError,
    Transport,
    Usage,
    embedding_transport,
    server_failed,
)
from flowevolve.llm.client.answer_lengths import CallKind
from flowevolve.llm.client.hedging import Hedgeable, Hedging
from flowevolve.llm.client.reachability import CHECK_SECONDS, without_full_stop
from flowevolve.llm.client.role import Role
from flowevolve.llm.client.thoughts import cut_while_thinking, without_thinking
from flowevolve.llm.scheduling.request_queue import QueuedRequest
from flowevolve.llm.usage import embedding_with_estimated_usage, with_estimated_usage


@runtime_checkable
class HasBaseURL(Protocol):
    """A transport that knows the address of its backend."""

    @property
    def base_url(self) -> str: ...


@runtime_checkable
class HasIdentity(Protocol):
    """A transport whose replies depend on more than its address; `identity` says on what."""

    @property
    def identity(self) -> str: ...


LATE_SECONDS = 5.0
"""A timer that fires so much too late shows that this process was suspended, or the machine asleep."""
_WRONG_SETTING = "Check the role's model, the API key and the base URL in the config"
_NOTHING_LEFT = "The account has no money or quota left: add to it, or take another key, and go on with the run"


class FailedCalls:
    """Calls that failed one after the other: how many, and for whom."""

    def __init__(self) -> None:
        self.count = 0
        self._whose: set[str] = set()
        """Candidates, and the items of work that is for none."""

    def add(self, scope: CallScope) -> None:
        self.count += 1
        self._whose.add(scope.candidate or scope.work.item)

    @property
    def of_one_candidate(self) -> bool:
        """Whether what they have in common may be the fault of one candidate, such as a prompt that is too long."""
        return len(self._whose) == 1


class Backend:
    """A transport, the time of its last answer to any call, and when this process was last seen to be suspended."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.where = transport.base_url if isinstance(transport, HasBaseURL) else type(transport).__name__
        self.identity = transport.identity if isinstance(transport, HasIdentity) else self.where
        self.answered = -inf
        self.unanswered_in_a_row = 0
        """Calls given up without an answer since the last answered one."""
        self.failed_in_a_row = 0
        """Calls given up since the last answered one, as the server was out of order or rejected them; none before the
        first.
        """
        self.last_suspended = -inf
        self._answered_calls: dict[str, PendingCall[ChatReply] | PendingCall[EmbedReply]] = {}
        """The last answered call of each model."""

    def has_answered(self, model: str) -> bool:
        return model in self._answered_calls

    def note_answered(self, call: PendingCall[ChatReply] | PendingCall[EmbedReply], time: float) -> None:
        self._answered_calls[call.request.model] = call
        self._note_answer(time)

    async def answers_again(self, failed: PendingCall[R]) -> bool:
        """Whether the last answered request of this call's model is answered again; what that takes, the call pays."""
        known = self._answered_calls.get(failed.request.model)
        if known is None:
            return False
        try:
            failed.failed_usage += await _sent_again(known)
        except TimeoutError:
            return False
        except LLMError as error:
            failed.failed_usage += error.usage
            if server_failed(error) or isinstance(error, RejectedError):
                return False
        self._note_answer(now())
        return True

    def _note_answer(self, time: float) -> None:
        self.answered = time
        self.unanswered_in_a_row = 0
        self.failed_in_a_row = 0

    def note_wait_end(self, due: float, time: float) -> None:
        """Note that a wait due at ``due`` ended at ``time``. If that is late, this process was suspended meanwhile, and
        the time does not count as silence of the backend.
        """
        if time - due > LATE_SECONDS:
            self.last_suspended = time


@dataclass(slots=True)
class PendingCall(Generic[R]):
    """A call in progress: its request, its attempts so far, and their failures."""

    role: str
    scope: CallScope
    request: ChatRequest | EmbedRequest
    settings: Role
    backend: Backend
    queued: float
    payer: Payer = NOBODY
    started: float = 0.0
    sent: float = 0.0
    """When the last request of this attempt was sent; a hedged attempt has two."""
    attempts: int = 0
    first_failure: float | None = None
    failures: dict[type[LLMError], int] = field(default_factory=dict)
    last_failure: LLMError | None = None
    failed_usage: Usage = NO_USAGE
    """Tokens billed for failed attempts, as far as the server reported them."""
    call_kind: CallKind = field(init=False)

    def __post_init__(self) -> None:
        self.call_kind = CallKind.of(self.role, self.scope.stage, self.scope.item)

    async def send(self, ask: QueuedRequest, remaining: int, hedging: Hedging | None) -> R:
        """Make one attempt; ``remaining`` requests of its group wait or are in flight.

        Raises:
            LLMError: as `Transport.chat`.
        """
        raise NotImplementedError

    async def send_again(self, timeout: float, *, in_full: bool) -> Usage:
        """Send the request once more, as it was or for as short an answer as there can be; returns what it took.

        Raises:
            LLMError: as `Transport.chat`.
        """
        raise NotImplementedError

    def cut_while_thinking(self, reply: R) -> CutWhileThinkingError | None:
        """The error of a call whose tokens ran out before its answer began; None if this reply is no such one."""
        return None

    def discount_wait(self, seconds: float) -> None:
        """Leave ``seconds`` of the last wait out of the backend's silence, as the call waited for a limit of ours."""
        if seconds and self.first_failure is not None:
            self.first_failure = min(self.started, max(self.first_failure, self.backend.answered) + seconds)

    def note_failure(self, error: LLMError, time: float) -> None:
        self.backend.note_wait_end(max(self.started, self.sent) + self.settings.timeout_seconds, time)
        self.failures[type(error)] = self.failures.get(type(error), 0) + 1
        self.last_failure = error
        self.failed_usage += error.usage
        if self.first_failure is None:
            self.first_failure = time

    def silence(self, time: float) -> float:
        """The seconds since this call's first failure or the backend's last answer, whichever was later."""
        first_failure = time if self.first_failure is None else self.first_failure
        return time - max(first_failure, self.backend.answered, self.backend.last_suspended)

    def record(self, finished: float, reply: R | None, error: LLMError | None) -> CallRecord:
        """What is reported of the call once it has finished."""
        return CallRecord(
            self.role,
            self.scope,
            self.request,
            reply,
            None if error is None else f"{type(error).__name__}: {error}",
            self.attempts,
            self.queued,
            self.started,
            finished,
            NO_USAGE if error is None else self.failed_usage,
        )

    def refused(self, error: RefusedError) -> BackendRefusedError:
        """The error that ends the run, as the backend will never serve this role."""
        mend = _NOTHING_LEFT if isinstance(error, OutOfCreditError) else _WRONG_SETTING
        return BackendRefusedError(
            f"{self.backend.where}: model {self.request.model!r} (role {self.role!r}) is refused: "
            f"{without_full_stop(error)}. {mend}"
        )

    def unreachable(self, silent_seconds: float, error: LLMError) -> BackendUnreachableError:
        """The error that ends the run, as the backend has been silent for so long."""
        return BackendUnreachableError(
            f"{self.backend.where} has given no answer for {silent_seconds:.0f} s and {self.attempts} attempts "
            f"(role {self.role!r}, model {self.request.model!r}); the last time: {without_full_stop(error)}. "
            "Start the server again or correct the base URL; to wait longer, raise patience_seconds"
        )


@dataclass(slots=True)
class PendingChat(PendingCall[ChatReply]):
    request: ChatRequest

    async def send(self, ask: QueuedRequest, remaining: int, hedging: Hedging | None) -> ChatReply:
        settings = self.settings
        if settings.send_priority:
            self.request = replace(self.request, priority=server_priority(self.scope.priority, remaining))
        if hedging is None:
            return await self._send()
        return await hedging.first_reply(
            Hedgeable(
                self.call_kind,
                ask,
                self.backend.where,
                self.request,
                self._send,
                self.payer.check,
                settings.scheduler,
            )
        )

    async def send_again(self, timeout: float, *, in_full: bool) -> Usage:
        request = self.request if in_full else replace(self.request, max_tokens=1, stream=False)
        return (await self.settings.transport.chat(request, timeout=timeout)).usage

    def cut_while_thinking(self, reply: ChatReply) -> CutWhileThinkingError | None:
        return cut_while_thinking(reply, self.request.max_tokens)

    async def _send(self) -> ChatReply:
        self.sent = now()
        settings = self.settings
        reply = await settings.transport.chat(self.request, timeout=settings.timeout_seconds)
        return with_estimated_usage(self.request, reply if settings.keep_thinking else await without_thinking(reply))


@dataclass(slots=True)
class PendingEmbed(PendingCall[EmbedReply]):
    request: EmbedRequest

    async def send(self, ask: QueuedRequest, remaining: int, hedging: Hedging | None) -> EmbedReply:
        """As for any call. Embeddings are never hedged, as they are short."""
        settings = self.settings
        reply = await embedding_transport(settings.transport).embed(self.request, timeout=settings.timeout_seconds)
        return embedding_with_estimated_usage(self.request, reply)

    async def send_again(self, timeout: float, *, in_full: bool) -> Usage:
        request = self.request if in_full else replace(self.request, texts=self.request.texts[:1])
        return (await embedding_transport(self.settings.transport).embed(request, timeout=timeout)).usage


async def _sent_again(call: PendingCall[ChatReply] | PendingCall[EmbedReply]) -> Usage:
    """What it takes to send a call again: for a short answer, and in full where that is rejected, as it is by models
    that can't do with so few tokens.

    Raises:
        TimeoutError: if there is no answer in time.
        LLMError: as `Transport.chat`.
    """
    try:
        with anyio.fail_after(CHECK_SECONDS):
            return await call.send_again(CHECK_SECONDS, in_full=False)
    except RejectedError:
        timeout = call.settings.timeout_seconds
        with anyio.fail_after(timeout):
            return await call.send_again(timeout, in_full=True)


def server_priority(rank: int, remaining: int) -> int:
    """The priority for a server that schedules by it: ordered by rank, then by the requests left in the group (to 999).

    Lower goes first in the server, too, so requests that wait there keep the order in which we would send them.
    """
    return rank * 1000 + min(remaining, 999)
