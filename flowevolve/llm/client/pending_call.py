"""A call in progress, and what is known of the backend that it goes to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from math import inf
from typing import Generic, Self

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
    HasBaseURL,
    HasIdentity,
    LLMError,
    OutOfCreditError,
    R,
    RefusedError,
    RejectedError,
    ServerError,
    Transport,
    UnreachableError,
    Usage,
    embedding_transport,
)
from flowevolve.llm.client.answer_lengths import CallKind
from flowevolve.llm.client.hedging import Hedgeable, Hedging
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.plugin_transports import within_protocol
from flowevolve.llm.client.reachability import without_full_stop
from flowevolve.llm.client.thoughts import cut_while_thinking, without_thinking
from flowevolve.llm.scheduling.request_queue import QueuedRequest
from flowevolve.llm.usage import embedding_with_estimated_usage, with_estimated_usage

LATE_SECONDS = 5.0
"""A timer that fires this much too late shows that this process was suspended, or the machine asleep."""
_WRONG_SETTING = "Check the model, the API key and the base URL in the config"
_NOTHING_LEFT = "The account has no money or quota left: add to it, or take another key, and go on with the run"


class FailedCalls:
    """The number of calls that have failed, and the candidates that they were for."""

    def __init__(self) -> None:
        self.count = 0
        self._whose: set[str] = set()
        """Candidates and, for work that is not for a candidate, its items."""

    def add(self, scope: CallScope) -> None:
        self.count += 1
        self._whose.add(scope.candidate or scope.work.item)

    @property
    def of_one_candidate(self) -> bool:
        """Whether all were for one candidate. That may then be to blame, for example for a prompt that is too long."""
        return len(self._whose) == 1


class ModelAnswers(Generic[R]):
    """What is known of a backend's answers to requests of one kind (chats or embeddings) for one model."""

    def __init__(self) -> None:
        self.answered = -inf
        """When a call was last answered."""
        self.last: PendingCall[R] | None = None
        """The call that was answered last."""
        self.failed_in_a_row = 0
        """Calls given up since the last answer because the server failed at them or rejected them; 0 before the first
        answer. A repeat that leaves open whether the server is down starts the count again.
        """
        self.is_down = False
        """Whether the last answered request failed when it was sent again, and no call has been answered since."""
        self.takes_short = True
        """Whether, as far as is known, the server accepts requests for the shortest possible answer."""
        self.repeats = 0
        """How often the request that was answered last was sent again."""
        self.repeating = anyio.Lock()

    def note_answer(self, time: float) -> None:
        self.answered = time
        self.failed_in_a_row = 0
        if self.is_down:
            self.is_down = False
            self.takes_short = True  # rejections during the outage say nothing about this form


class Backend:
    """A transport, the time of its last answer to any call, and when this process was last seen to be suspended."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.where = transport.base_url if isinstance(transport, HasBaseURL) else type(transport).__name__
        self.identity = transport.identity if isinstance(transport, HasIdentity) else self.where
        self.answered = -inf
        self.unanswered_in_a_row = 0
        """Calls given up without an answer since the last answered one."""
        self.last_suspended = -inf
        self.chats: defaultdict[str, ModelAnswers[ChatReply]] = defaultdict(ModelAnswers)
        """By model, like ``embeddings``."""
        self.embeddings: defaultdict[str, ModelAnswers[EmbedReply]] = defaultdict(ModelAnswers)

    def note_answer(self, time: float) -> None:
        self.answered = time
        self.unanswered_in_a_row = 0

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
    model: Model
    backend: Backend
    answers: ModelAnswers[R]
    queued: float
    payer: Payer = NOBODY
    started: float = 0.0
    sent: float = 0.0
    """When the last request of this attempt was sent; a hedged attempt has two."""
    attempts: int = 0
    repeats_before: int = 0
    """`ModelAnswers.repeats` when this attempt began."""
    waited_as_down: bool = False
    """Whether this attempt was made after a wait for a server that was down."""
    lost_answers: int = 0
    """How many attempts got no answer in their whole timeout, or while the backend answered other calls. Those at a
    backend that nobody could reach don't count.
    """
    first_failure: float | None = None
    failures: dict[type[LLMError], int] = field(default_factory=dict)
    last_failure: LLMError | None = None
    failed_usage: Usage = NO_USAGE
    """Tokens billed for failed attempts, as far as the server reported them."""
    call_kind: CallKind = field(init=False)

    def __post_init__(self) -> None:
        self.call_kind = CallKind.of(self.role, self.scope.stage, self.scope.item)

    async def send(self, ask: QueuedRequest, remaining: int, hedging: Hedging | None) -> R:
        """Make one attempt. ``remaining`` is how many requests of its group wait or are in flight.

        Raises:
            LLMError: as `Transport.chat`.
        """
        raise NotImplementedError

    def again(self, failed: PendingCall[R], *, in_full: bool) -> Self:
        """A copy of this call to repeat, unchanged or for the shortest possible answer; ``failed`` pays for it."""
        return replace(
            self,
            scope=failed.scope,
            payer=failed.payer,
            request=self.request if in_full else self.shortest(),
            failures={},
            last_failure=None,
            first_failure=None,
            failed_usage=NO_USAGE,
        )

    def shortest(self) -> ChatRequest | EmbedRequest:
        """The request, changed to ask for the shortest possible answer."""
        raise NotImplementedError

    def cut_while_thinking(self, reply: R) -> CutWhileThinkingError | None:
        """The error for a reply whose tokens ran out before its answer began; None for any other reply."""
        return None

    def discount_wait(self, seconds: float) -> None:
        """Leave ``seconds`` of the last wait out of the backend's silence, as the call waited for one of our limits."""
        if seconds and self.first_failure is not None:
            self.first_failure = min(self.started, max(self.first_failure, self._last_answer) + seconds)

    def discount_question(self, seconds: float) -> None:
        """Leave ``seconds`` out of the backend's silence: the time spent on finding out whether it is down."""
        if seconds and self.first_failure is not None:
            self.first_failure = max(self.first_failure, self._last_answer) + seconds

    def note_failure(self, error: LLMError, time: float) -> None:
        self.backend.note_wait_end(max(self.started, self.sent) + self.model.timeout_seconds, time)
        self.failures[type(error)] = self.failures.get(type(error), 0) + 1
        self.last_failure = error
        if self.timed_out(error, time) or (
            isinstance(error, UnreachableError) and self.backend.answered > self.started
        ):
            self.lost_answers += 1
        self.failed_usage += error.usage
        if self.first_failure is None:
            self.first_failure = time

    def timed_out(self, error: LLMError, time: float) -> bool:
        """Whether this attempt got no answer in its whole timeout."""
        return isinstance(error, UnreachableError) and time - self.started >= self.model.timeout_seconds

    def silence(self, time: float) -> float:
        """The seconds since this call's first failure, the last answer that counts for it, or the end of this process's
        last suspension, whichever was latest.
        """
        first_failure = time if self.first_failure is None else self.first_failure
        return time - max(first_failure, self._last_answer, self.backend.last_suspended)

    @property
    def _last_answer(self) -> float:
        """When the backend last gave an answer that counts for this call. After a server error only answers for the
        same model count, as the backend may be out of order for that model alone.
        """
        return self.answers.answered if isinstance(self.last_failure, ServerError) else self.backend.answered

    def record(self, finished: float, reply: R | None, error: LLMError | None) -> CallRecord:
        """The record of the call that is reported once it has finished."""
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
            f"{self.backend.where}: {self.model.named_by} {self.request.model!r} is refused: "
            f"{without_full_stop(error)}. {mend}"
        )

    def unreachable(self, silent_seconds: float, error: LLMError) -> BackendUnreachableError:
        """The error that ends the run, as the backend has been silent for this long."""
        return BackendUnreachableError(
            f"{self.backend.where} has given no answer for {silent_seconds:.0f} s and {self.attempts} attempts "
            f"({self.model.named_by} {self.request.model!r}); the last time: {without_full_stop(error)}. "
            "Start the server again or correct the base URL; to wait longer, raise llm.patience_seconds"
        )

    def rejected(self, silent_seconds: float, error: RejectedError) -> BackendUnreachableError:
        """The error that ends the run, as the backend has rejected every request for this long."""
        return BackendUnreachableError(
            f"{self.backend.where} answers, but has rejected every request for {self.model.named_by} "
            f"{self.request.model!r} for {silent_seconds:.0f} s, and what it answered before as well; the last time: "
            f"{without_full_stop(error)}. Look at its account, its key and its settings; to wait longer, raise "
            "llm.patience_seconds"
        )


@dataclass(slots=True)
class PendingChat(PendingCall[ChatReply]):
    request: ChatRequest

    async def send(self, ask: QueuedRequest, remaining: int, hedging: Hedging | None) -> ChatReply:
        if self.model.send_priority:
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
                self.model.scheduler,
            )
        )

    def shortest(self) -> ChatRequest:
        return replace(self.request, max_tokens=1, stream=False)

    def cut_while_thinking(self, reply: ChatReply) -> CutWhileThinkingError | None:
        return cut_while_thinking(reply, self.request.max_tokens)

    async def _send(self) -> ChatReply:
        self.sent = now()
        model = self.model
        reply = await within_protocol(model.transport.chat(self.request, timeout=model.timeout_seconds), ChatReply)
        return with_estimated_usage(self.request, reply if model.keep_thinking else await without_thinking(reply))


@dataclass(slots=True)
class PendingEmbed(PendingCall[EmbedReply]):
    request: EmbedRequest

    async def send(self, ask: QueuedRequest, remaining: int, hedging: Hedging | None) -> EmbedReply:
        """As for any call. Embeddings are never hedged, as they are short."""
        model = self.model
        call = embedding_transport(model.transport).embed(self.request, timeout=model.timeout_seconds)
        reply = await within_protocol(call, EmbedReply)
        return embedding_with_estimated_usage(self.request, reply)

    def shortest(self) -> EmbedRequest:
        return replace(self.request, texts=self.request.texts[:1])


def server_priority(rank: int, remaining: int) -> int:
    """The priority for a server that schedules by it: by rank, then by the requests left in the group (up to 999).

    The server also puts lower numbers first, so requests that wait there keep the order in which we would send them.
    """
    return rank * 1000 + min(remaining, 999)
