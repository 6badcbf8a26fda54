"""Rate limits: requests wait here so that a model is not asked faster than its server allows.

They wait before the scheduler (`flowevolve.llm.scheduling.scheduler`), without holding one of its slots. Each model of
each backend has limits of its own, so calls to other models are not held up. Only one of a model's requests at a time
waits for the limit; the others queue up behind it in the scheduler's order, so that after a storm of refusals they
return one by one. Requests to a model whose server reports no limits and refuses nothing don't wait.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from math import inf
from types import TracebackType
from typing import Self

import anyio

from flowevolve._util import clock
from flowevolve._util.tasks import Pulse
from flowevolve.core.events import Log, log_nothing
from flowevolve.core.model import (
    CHARS_PER_TOKEN,
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    OverloadedError,
    R,
)
from flowevolve.core.server_event_kinds import LimitsRefused
from flowevolve.llm.scheduling.held_back import HeldBack, Repeats
from flowevolve.llm.scheduling.model_rates import Bucket, ModelRates, SentRequest
from flowevolve.llm.scheduling.rate_headers import LimitKind, allowances
from flowevolve.llm.scheduling.request_queue import QueuedRequest
from flowevolve.llm.scheduling.scheduler import Scheduler

TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, slots=True)
class LimitStats:
    """The waits of one model's requests. The rates are the lowest of those in force at the end."""

    backend: str
    model: str
    storms: int
    waited_seconds: float
    """Summed over the requests at the head of the queue."""
    requests_per_minute: float | None
    tokens_per_minute: float | None


class Limits:
    """Applies rate limits before requests enter the scheduler. To be used from one event loop.

    ``requests_per_minute`` and ``tokens_per_minute`` apply to each model of each backend separately. However long a
    server asks to wait, it is tried again after ``longest_pause`` seconds. Storms of refusals are written to ``log``.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        longest_pause: float = inf,
        log: Log = log_nothing,
    ) -> None:
        self._log = log
        self._scheduler = scheduler
        self._per_minute: dict[LimitKind, float | None] = {"requests": requests_per_minute, "tokens": tokens_per_minute}
        self._longest_pause = longest_pause
        self._models: dict[tuple[str, str], _Model] = {}
        self._refused, self._failed = Repeats(), Repeats()

    def permit(
        self, ask: QueuedRequest, backend: str, request: ChatRequest | EmbedRequest, own: Scheduler | None = None
    ) -> SendPermit:
        """An async context manager that waits until the request may be sent and holds a slot until the block ends.

        ``own`` is the role's own concurrency limit, if it has one; a slot of it is held as well.
        """
        return SendPermit(self._scheduler, own, self._model(backend, request.model), ask, request)

    def holds_back(self, backend: str, model: str) -> bool:
        """Whether requests to this model wait for its rate limits."""
        return self._model(backend, model).waiting > 0

    def repeating(self, error: LLMError | None) -> AbstractContextManager[None]:
        """A block in which a request whose attempt failed with this error waits to be sent again."""
        return (self._refused if error is not None and is_refusal(error) else self._failed).wait()

    def held_back(self) -> HeldBack:
        """What holds requests back at present."""
        waiting = sum(model.waiting for model in self._models.values())
        return HeldBack(
            waiting + self._refused.waiting, self._refused.failed, self._failed.waiting, self._failed.failed
        )

    def stats(self) -> list[LimitStats]:
        """The figures of the models that had to wait, in the order of their first requests."""
        return [
            LimitStats(
                backend,
                name,
                model.rates.storms,
                round(model.waited_seconds, 3),
                model.rates.requests_per_minute,
                model.rates.tokens_per_minute,
            )
            for (backend, name), model in self._models.items()
            if model.waited_seconds > 0 or model.rates.storms
        ]

    def _model(self, backend: str, name: str) -> _Model:
        model = self._models.get((backend, name))
        if model is None:
            now = clock.now()
            configured = {
                kind: Bucket.per_minute(amount, now) for kind, amount in self._per_minute.items() if amount is not None
            }
            rates = ModelRates(configured, self._longest_pause)
            model = self._models[backend, name] = _Model(
                backend, name, rates, Scheduler(1, self._scheduler.order), self._log
            )
        return model


class SendPermit:
    """Permission to send one request, once entered. It is a class, as a generator would cost more on every call."""

    __slots__ = ("_ask", "_model", "_own", "_permit", "_request", "_scheduler", "_sent", "remaining", "uncounted_wait")

    def __init__(
        self,
        scheduler: Scheduler,
        own: Scheduler | None,
        model: _Model,
        ask: QueuedRequest,
        request: ChatRequest | EmbedRequest,
    ) -> None:
        self.remaining = 0
        """The number of requests of its group that wait in the scheduler or are in flight, this one included."""
        self.uncounted_wait = 0.0
        """The seconds of its wait that don't count as silence of the server."""
        self._scheduler = scheduler
        self._own = own
        self._model = model
        self._ask = ask
        self._request = request

    async def __aenter__(self) -> Self:
        while True:
            self._sent, waited = await self._model.wait(self._ask, self._request)
            self.uncounted_wait += waited
            own = self._own
            self._permit = self._scheduler.permit(self._ask) if own is None else _both(own, self._scheduler, self._ask)
            try:
                self.remaining = await self._permit.__aenter__()
            except BaseException:
                self._model.not_sent(self._sent)
                raise
            if not self._model.paused_since(self._sent):
                return self
            await self._permit.__aexit__(None, None, None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, LLMError):
            self._model.failed(self._sent, error)
        await self._permit.__aexit__(kind, error, traceback)

    def answered(self, reply: R) -> R:
        """Learn the server's limits from an answer; returns the answer."""
        self._model.answered(self._sent, reply)
        return reply


@asynccontextmanager
async def _both(own: Scheduler, scheduler: Scheduler, ask: QueuedRequest) -> AsyncGenerator[int]:
    async with own.permit(ask) as remaining, scheduler.permit(ask) as remaining_of_all:
        yield max(remaining, remaining_of_all)


class _Model:
    """The rate limits of one model on one backend, and the queue of requests that wait for them."""

    def __init__(self, backend: str, name: str, rates: ModelRates, next_up: Scheduler, log: Log) -> None:
        self.rates = rates
        self.waiting = 0
        self.waited_seconds = 0.0
        self._backend = backend
        self._name = name
        self._next_up = next_up
        self._log = log
        self._changed = Pulse()

    async def wait(self, ask: QueuedRequest, request: ChatRequest | EmbedRequest) -> tuple[SentRequest, float]:
        """Wait until the request may be sent and count it as sent; also returns `ModelRates.uncounted_wait`."""
        tokens = self._tokens(ask, request)
        began = clock.now()
        if not self.waiting and self.rates.wait(began, tokens) <= 0:
            return self.rates.take(began, tokens), 0.0
        self.waiting += 1
        try:
            async with self._next_up.permit(ask):
                await self._wait_as_next(tokens)
                now = clock.now()
                return self.rates.take(now, tokens), self.rates.uncounted_wait(began, now)
        finally:
            self.waiting -= 1

    def paused_since(self, sent: SentRequest) -> bool:
        """Whether a pause began while the request waited in the scheduler. If so, it must wait again."""
        if self.rates.paused_until > sent.at:
            sent.at = clock.now()
        paused = self.rates.paused_until > sent.at
        if paused:
            self.not_sent(sent)
        return paused

    def not_sent(self, sent: SentRequest) -> None:
        """Take back a request that was counted as sent: it was cancelled before it had a slot, or must wait again."""
        self.rates.give_back(sent)
        self._wake()

    async def _wait_as_next(self, tokens: float) -> None:
        began = now = clock.now()
        try:
            while (wait := self.rates.wait(now, tokens, now - began)) > 0:
                with anyio.move_on_after(wait):
                    await self._changed.wait()
                now = clock.now()
        finally:
            self.waited_seconds += clock.now() - began

    def answered(self, sent: SentRequest, reply: ChatReply | EmbedReply) -> None:
        now = clock.now()
        self.rates.answered(sent, now, reply.usage.total_tokens)
        if reply.headers is not None:
            self.rates.note_headers(sent, now, allowances(reply.headers))
        self._wake()

    def failed(self, sent: SentRequest, error: LLMError) -> None:
        now = clock.now()
        if error.headers is not None:
            self.rates.note_headers(sent, now, allowances(error.headers))
        if is_refusal(error) and self.rates.refused(sent, now, error.retry_after):
            log_refusal_storm(self._log, self._backend, self._name, self.rates)
        self._wake()

    def _wake(self) -> None:
        if self.waiting:
            self._changed.fire()

    def _tokens(self, ask: QueuedRequest, request: ChatRequest | EmbedRequest) -> float:
        if not self.rates.counts_tokens:
            return 0.0
        return estimated_tokens(request, ask.expected_tokens)


def is_refusal(error: LLMError) -> bool:
    """Whether the error says that the server gets requests too fast."""
    return isinstance(error, OverloadedError) and error.status in (None, TOO_MANY_REQUESTS)


def log_refusal_storm(log: Log, backend: str, model: str, rates: ModelRates) -> None:
    """Log that a storm of refusals has begun."""
    pause_seconds = round(rates.paused_until - clock.now(), 3)
    log(LimitsRefused(backend, model, pause_seconds, rates.requests_per_minute))


def estimated_tokens(request: ChatRequest | EmbedRequest, expected: float = 0.0) -> float:
    """An estimate of the tokens of a request and its answer.

    The answer is taken to have ``expected`` tokens or, if that is 0, ``max_tokens``.
    """
    if isinstance(request, EmbedRequest):
        return sum(map(len, request.texts)) / CHARS_PER_TOKEN
    prompt = sum(len(message.content) for message in request.messages) / CHARS_PER_TOKEN
    return prompt + (expected or request.max_tokens or 0)
