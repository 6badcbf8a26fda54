"""Rate limits: where requests wait so that a model is not asked faster than its server allows.

The wait is before the gate (`flowevolve.llm.gate`), without one of its slots, and every model waits by itself: calls
of other models pass. Of one model's requests a single one at a time waits for the limit and the rest wait for their
turn, in the gate's order; so after a storm of refusals they come back one after the other. Requests to a model whose
server tells no limits and refuses nothing don't wait.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from math import inf

import anyio

from flowevolve.concurrency import Pulse
from flowevolve.llm.gate import Gate
from flowevolve.llm.line import Ask
from flowevolve.llm.news import News
from flowevolve.llm.rate_headers import Kind, allowances
from flowevolve.llm.rates import Bucket, ModelRates, Sent
from flowevolve.llm.types import ChatReply, ChatRequest, LLMError, OverloadedError

CHARS_PER_TOKEN = 4
"""For what a request takes of a limit on tokens before its answer tells."""
TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, slots=True)
class LimitStats:
    """A model that had to wait. The rates are the lowest in force at the end."""

    backend: str
    model: str
    storms: int
    waited_seconds: float
    """Summed over the requests that were next in turn."""
    requests_per_minute: float | None
    tokens_per_minute: float | None


class Limits:
    """The way to the gate. To be used from one event loop.

    ``requests_per_minute`` and ``tokens_per_minute`` hold for every model of every backend. Nobody waits longer than
    ``longest_pause`` seconds for a limit before the server is asked again, which then counts as its silence.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        longest_pause: float = inf,
    ) -> None:
        self.news = News()
        self._gate = gate
        self._per_minute: dict[Kind, float | None] = {"requests": requests_per_minute, "tokens": tokens_per_minute}
        self._longest_pause = longest_pause
        self._models: dict[tuple[str, str], _Model] = {}

    @asynccontextmanager
    async def slot(self, ask: Ask, backend: str, request: ChatRequest) -> AsyncGenerator[Turn]:
        """Wait until the request may be sent, and hold a slot of the gate for the length of an ``async with``."""
        model = self._model(backend, request.model)
        while True:
            sent = await model.wait(ask, request)
            try:
                async with self._gate.slot(ask) as remaining:
                    now = anyio.current_time()
                    if model.rates.paused_until > now:  # since it began to wait at the gate
                        model.rates.give_back(sent)
                        continue
                    sent = replace(sent, at=now)
                    yield Turn(remaining, model, sent)
                    return
            except LLMError as error:
                model.failed(sent, error)
                raise

    def holds_back(self, backend: str, model: str) -> bool:
        """Whether requests to this model wait for its limits."""
        return self._model(backend, model).waiting > 0

    def stats(self) -> list[LimitStats]:
        """The models that had to wait, in the order of their first request."""
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
            now = anyio.current_time()
            configured = {
                kind: Bucket.per_minute(amount, now) for kind, amount in self._per_minute.items() if amount is not None
            }
            rates = ModelRates(configured, self._longest_pause)
            model = self._models[backend, name] = _Model(backend, name, rates, Gate(1, self._gate.order), self.news)
        return model


@dataclass(frozen=True, slots=True)
class Turn:
    """A request that may be sent now."""

    remaining: int
    """Requests of its group that wait at the gate or are in flight, this one included."""
    model: _Model
    sent: Sent

    def answered(self, reply: ChatReply) -> ChatReply:
        """Learn from the answer; returns it."""
        self.model.answered(self.sent, reply)
        return reply


class _Model:
    """One model on one backend, and who waits for it."""

    def __init__(self, backend: str, name: str, rates: ModelRates, next_up: Gate, news: News) -> None:
        self.rates = rates
        self.waiting = 0
        self.waited_seconds = 0.0
        self._backend = backend
        self._name = name
        self._next_up = next_up
        self._news = news
        self._changed = Pulse()

    async def wait(self, ask: Ask, request: ChatRequest) -> Sent:
        """Until the request may be sent; it then counts as sent."""
        tokens = self._tokens(ask, request)
        now = anyio.current_time()
        if not self.waiting and self.rates.wait(now, tokens) <= 0:
            return self.rates.take(now, tokens)
        self.waiting += 1
        try:
            async with self._next_up.slot(ask):
                await self._wait_as_next(tokens)
                return self.rates.take(anyio.current_time(), tokens)
        finally:
            self.waiting -= 1

    async def _wait_as_next(self, tokens: float) -> None:
        began = now = anyio.current_time()
        until = began + self.rates.longest_pause
        try:
            while (wait := min(self.rates.wait(now, tokens), until - now)) > 0:
                with anyio.move_on_after(wait):
                    await self._changed.wait()
                now = anyio.current_time()
        finally:
            self.waited_seconds += anyio.current_time() - began

    def answered(self, sent: Sent, reply: ChatReply) -> None:
        now = anyio.current_time()
        self.rates.answered(sent, now, reply.usage.total_tokens)
        if reply.headers is not None:
            self.rates.told(sent, now, allowances(reply.headers))
        self._wake()

    def failed(self, sent: Sent, error: LLMError) -> None:
        now = anyio.current_time()
        if error.headers is not None:
            self.rates.told(sent, now, allowances(error.headers))
        if isinstance(error, OverloadedError) and error.status in (None, TOO_MANY_REQUESTS):
            begins_storm = self.rates.refused(sent, now, error.retry_after)
            if begins_storm:
                self._tell_of_storm(now)
        self._wake()

    def _tell_of_storm(self, now: float) -> None:
        self._news.tell(
            "limits.refused",
            {
                "backend": self._backend,
                "model": self._name,
                "pause_seconds": round(self.rates.paused_until - now, 3),
                "requests_per_minute": self.rates.requests_per_minute,
            },
        )

    def _wake(self) -> None:
        if self.waiting:
            self._changed.fire()

    def _tokens(self, ask: Ask, request: ChatRequest) -> float:
        if not self.rates.counts_tokens:
            return 0.0
        prompt = sum(len(message.content) for message in request.messages) / CHARS_PER_TOKEN
        return prompt + (ask.expected_tokens or request.max_tokens or 0)
