"""When a second request pays and what it costs: whole items of several calls, on the virtual clock."""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import fmean, quantiles

import anyio
import pytest

from flowevolve._util import clock
from flowevolve.core.calls import CallScope
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.hedging import Hedging
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.rate_limits import Limits
from flowevolve.llm.scheduling.scheduler import Scheduler

pytestmark = pytest.mark.anyio

ITEMS, CALLS, SIDE_BY_SIDE = 200, 8, 4
SLOW_SHARE, SLOW = 0.03, 10.0
TOKENS = 100


class Server:
    """Answers in about a second, and a few requests only in ten: by chance, or because these answers are long.

    It works on ``slots`` requests at a time.
    """

    base_url = "http://fake/v1"

    def __init__(self, slots: int, *, by_chance: bool) -> None:
        self._slots = anyio.CapacityLimiter(slots)
        self._by_chance = by_chance
        self._chance = random.Random(1)

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        rng = self._chance if self._by_chance else random.Random(request.messages[0].content)
        seconds = rng.uniform(0.7, 1.3) * (SLOW if rng.random() < SLOW_SHARE else 1.0)
        async with self._slots:
            await anyio.sleep(seconds)
        return ChatReply("fine", Usage(0, TOKENS), model=request.model)

    async def models(self) -> tuple[str, ...]:
        return ("m",)

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True)
class Went:
    """Seconds an item took, mean and 90th percentile, and of all; tokens of cancelled requests over those of replies."""

    mean: float
    tail: float
    total: float
    cost: float


async def call_kind(share: float, *, slots: int = 64, by_chance: bool = True) -> Went:
    """Items one after the other in each of some workers; an item ends with the last of its calls."""
    scheduler = Scheduler(64)
    limits = Limits(scheduler)
    hedging = Hedging(scheduler, limits, share)
    server = Server(slots, by_chance=by_chance)
    client = LLMClient(
        {"r": Model(server, "m")}, scheduler, RetryPolicy(), 1, lambda record: None, limits=limits, hedging=hedging
    )
    took: list[float] = []
    left = iter(range(ITEMS))
    began = clock.now()

    async def call(item: int, number: int) -> None:
        scope = CallScope("evaluate", f"{item}/{number}", None, 0, number)
        await client.chat("r", [Message("user", f"{item}/{number}")], scope=scope)

    async def worker() -> None:
        for item in left:
            start = clock.now()
            async with anyio.create_task_group() as tasks:
                for number in range(CALLS):
                    tasks.start_soon(call, item, number)
            took.append(clock.now() - start)

    async with anyio.create_task_group() as tasks:
        for _ in range(SIDE_BY_SIDE):
            tasks.start_soon(worker)
    cost = hedging.stats.lost_tokens_estimate / (ITEMS * CALLS * TOKENS)
    return Went(fmean(took), quantiles(took, n=10)[-1], clock.now() - began, cost)


async def test_it_pays_where_a_few_answers_are_late_by_chance_and_the_server_has_room() -> None:
    without, hedged = await call_kind(0.0), await call_kind(0.05)
    assert hedged.mean < 0.75 * without.mean
    assert hedged.tail < 0.5 * without.tail
    assert hedged.cost < 0.05


async def test_it_is_of_no_use_where_answers_are_late_because_they_are_long() -> None:
    without, hedged = await call_kind(0.0, by_chance=False), await call_kind(0.05, by_chance=False)
    assert hedged.mean > 0.97 * without.mean
    assert 0 < hedged.cost < 0.05


async def test_on_a_full_server_it_gains_less_and_costs_the_same() -> None:
    without, hedged = await call_kind(0.0, slots=8), await call_kind(0.05, slots=8)
    assert 0.85 * without.mean < hedged.mean < without.mean
    assert 0 < hedged.cost < 0.05
