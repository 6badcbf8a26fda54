"""How close a run comes to the most that its server can do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from bench.ablations.runs import MINUTES, Setting, Watch, execute
from flowevolve._util import clock
from flowevolve.core.calls import CallRecord
from flowevolve.core.model import ChatReply, ChatRequest
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.service_model import make_service


@dataclass(frozen=True)
class Saturation:
    """Output tokens per second of a run, and the most that its server can reach, over the same window."""

    rate: float
    ceiling: float
    waiting_share: float
    in_flight: tuple[tuple[float, float], ...]
    """Mean requests in flight per ten seconds, as (seconds, requests)."""


WARM_UP = 300.0
"""Seconds at the start that are left out: the seed's validation comes first, and then the stream fills up."""
BIN = 10.0


def saturation(setting: Setting) -> Saturation:
    watch = Watch(keep_calls=True)
    result = execute(setting, watch)
    end = MINUTES * 60
    inside = [call for call in watch.calls if call.reply is not None and WARM_UP <= call.finished <= end]
    tokens = sum(call.reply.usage.completion_tokens for call in inside if call.reply is not None)
    server = result.server
    share = 0.0 if server is None else server.mean_waiting / max(1.0, server.mean_running)
    return Saturation(tokens / (end - WARM_UP), open_loop(setting.profile, inside), share, in_flight(watch.calls, end))


def open_loop(profile: str, calls: Sequence[CallRecord]) -> float:
    """The tokens per second that the same server produces when all these requests are in its queue at once, until the
    queue is empty.
    """
    service = make_service(PROFILES[profile])
    rates: list[float] = []

    async def serve(request: ChatRequest, reply: ChatReply) -> None:
        prompt = "\n".join(message.content for message in request.messages)
        await service.serve(prompt, reply.usage.completion_tokens, 0, random.Random(0))
        if not service.stats.waiting:
            rates.append(service.stats.output_tokens / anyio.current_time())

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for call in sorted(calls, key=lambda each: each.started):
                if isinstance(call.request, ChatRequest) and isinstance(call.reply, ChatReply):
                    tasks.start_soon(serve, call.request, call.reply)

    clock.run(main, clock="virtual")
    return rates[0]


def in_flight(calls: Sequence[CallRecord], end: float) -> tuple[tuple[float, float], ...]:
    bins = [0.0] * int(end / BIN)
    for call in calls:
        for place in range(int(call.started / BIN), min(len(bins), int(call.finished / BIN) + 1)):
            bins[place] += max(0.0, min(call.finished, (place + 1) * BIN) - max(call.started, place * BIN)) / BIN
    return tuple((place * BIN, level) for place, level in enumerate(bins))
