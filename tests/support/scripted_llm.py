"""A transport that answers by a script, and a client over such transports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from flowevolve._util.json_types import JSON
from flowevolve.core.budget import OverBudgetError
from flowevolve.core.calls import CallRecord, CallScope, Payer
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    Message,
    RejectedError,
    UnreachableError,
    Usage,
)
from flowevolve.llm.client.accounting import Account, Price
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.request_queue import Order
from flowevolve.llm.scheduling.scheduler import Scheduler

ASK = [Message("user", "hello")]
STEADY = RetryPolicy(base_seconds=1, max_seconds=8, jitter=0, server_error_attempts=3, patience_seconds=60)


class Scripted:
    """Answers with what the script says next (an error is raised), and for ever with the last entry."""

    base_url = "http://fake/v1"

    def __init__(
        self, *script: str | LLMError, takes: float = 0.0, models: tuple[str, ...] | LLMError = ("m",)
    ) -> None:
        self.script = list(script) or ["fine"]
        self.takes = takes
        self.served = models
        self.requests: list[ChatRequest] = []
        self.sent_at: list[float] = []

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        self.requests.append(request)
        self.sent_at.append(anyio.current_time())
        next_up = self.script[0] if len(self.script) == 1 else self.script.pop(0)
        try:
            with anyio.fail_after(timeout):
                await anyio.sleep(self.takes)
        except TimeoutError:
            raise UnreachableError("too slow") from None
        if isinstance(next_up, LLMError):
            raise next_up
        return ChatReply(next_up, Usage(100, 10, 40), model=request.model)

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        raise RejectedError("HTTP 400: no embeddings of this")

    async def models(self) -> tuple[str, ...]:
        if isinstance(self.served, LLMError):
            raise self.served
        return self.served

    async def aclose(self) -> None:
        pass


class Rig:
    """A client over scripted transports, one role each, and what its observer saw."""

    def __init__(
        self,
        *transports: Any,
        limit: int = 10,
        retry: RetryPolicy = STEADY,
        seed: int = 7,
        prices: Mapping[str, Price] | None = None,
        order: Order | None = None,
        **settings: Any,
    ) -> None:
        self.records: list[CallRecord] = []
        self.scheduler = Scheduler(limit, order)
        self.roles = {f"r{n}": Model(transport, "m", **settings) for n, transport in enumerate(transports)}
        self.events: list[tuple[str, dict[str, JSON]]] = []
        self.client = LLMClient(
            self.roles,
            self.scheduler,
            retry,
            seed,
            self.records.append,
            Account(prices or {}),
            log=lambda body: self.events.append((body.kind, body.to_json())),
        )

    async def ask(
        self,
        role: str = "r0",
        index: int = 0,
        priority: int = 0,
        candidate: str | None = None,
        item: str = "1",
        messages: Sequence[Message] = ASK,
        **options: Any,
    ) -> ChatReply:
        scope = CallScope("generate", item, candidate, priority, index)
        return await self.client.chat(role, messages, scope=scope, **options)


def payer(*, attempts: int = 9) -> tuple[list[tuple[Usage, float | None]], Payer]:
    """Who pays for a call with so many attempts at most, and a list of what it was told to pay."""
    paid: list[tuple[Usage, float | None]] = []
    left = iter(range(attempts))

    class Purse(Payer):
        def check(self) -> None:
            if paid or next(left, None) is None:
                raise OverBudgetError("tokens", 1)

        def pay(self, usage: Usage, dollars: float | None) -> None:
            paid.append((usage, dollars))

    return paid, Purse()
