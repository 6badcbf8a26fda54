"""Several fake endpoints behind one router, and a client that calls them."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest

from flowevolve._util.json_types import JSON
from flowevolve.core.calls import CallScope
from flowevolve.core.model import ChatReply, ChatRequest, LLMError, Message, RefusedError, UnreachableError
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.router import EJECT_AFTER, Router

DOWN = UnreachableError("connection refused")


def about(text: str, *, long: bool = True) -> ChatRequest:
    return ChatRequest("m", (Message("system", text * (300 if long else 1)), Message("user", "hello")))


class Fake:
    """An endpoint that answers after ``takes`` seconds, or raises ``trouble`` at once."""

    def __init__(self, takes: float = 1.0, models: tuple[str, ...] = ("m",)) -> None:
        self.takes = takes
        self.served = models
        self.trouble: LLMError | None = None
        self.calls: list[float] = []
        self.checks: list[float] = []
        self.open = 0
        self.seems_well = False
        """Whether it passes health checks in spite of its trouble."""
        self.hangs = False
        """Whether its health checks are never answered."""
        self.lists = True

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        self.calls.append(anyio.current_time())
        self.open += 1
        try:
            if (trouble := self.trouble) is not None:
                await anyio.lowlevel.checkpoint()
                raise trouble
            await anyio.sleep(self.takes)
        finally:
            self.open -= 1
        return ChatReply("fine", model=request.model)

    async def models(self) -> tuple[str, ...]:
        self.checks.append(anyio.current_time())
        await (anyio.sleep_forever() if self.hangs else anyio.lowlevel.checkpoint())
        if self.trouble is not None and not self.seems_well:
            raise self.trouble
        if not self.lists:
            raise RefusedError("HTTP 404: Not Found", status=404)
        return self.served

    async def aclose(self) -> None:
        self.trouble = UnreachableError("closed")


class Rig:
    def __init__(
        self,
        count: int = 3,
        takes: float = 1.0,
        patience: float = 60.0,
        fakes: Sequence[Fake] = (),
        *,
        must_have_list: bool = True,
    ) -> None:
        self.fakes = list(fakes) or [Fake(takes) for _ in range(count)]
        self.events: list[tuple[str, dict[str, JSON]]] = []
        self.router = Router(
            {f"http://{name}/v1": fake for name, fake in zip("abcdef", self.fakes, strict=False)},
            log=lambda body: self.events.append((body.kind, body.to_json())),
        )
        retry = RetryPolicy(jitter=0, patience_seconds=patience)
        role = Model(self.router, "m", must_have_list=must_have_list)
        self.client = LLMClient({"r": role}, Scheduler(1000), retry, 1, lambda record: None)

    @property
    def told(self) -> list[tuple[str, JSON]]:
        return [(kind, data.get("endpoint")) for kind, data in self.events]

    async def ask(self, index: int = 0, text: str = "x") -> ChatReply:
        scope = CallScope("evaluate", f"{index}", None, 0, 0)
        return await self.client.chat("r", about(text).messages, scope=scope)

    async def send(self, text: str = "x") -> ChatReply:
        return await self.router.chat(about(text), timeout=600)

    async def fail_until_ejected(self) -> None:
        for _ in range(EJECT_AFTER):
            with pytest.raises(UnreachableError):
                await self.send()

    def counts(self) -> list[int]:
        return [len(fake.calls) for fake in self.fakes]
