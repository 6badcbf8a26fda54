"""What it costs to have many calls open at once: CPU time and memory of a process, without any network."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

import anyio

from bench._lib.served import served_by
from bench.overhead.calls import Trivial, peak_mb
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.model import ChatReply, ChatRequest, Usage
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.run import Watchers, run_plan

ANSWER_SECONDS = 60.0


class Together:
    """A server that answers each call after a minute, so that all calls of a validation are open at once."""

    def __init__(self) -> None:
        self.peak = self._open = 0

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        self._open += 1
        self.peak = max(self.peak, self._open)
        await anyio.sleep(ANSWER_SECONDS)
        self._open -= 1
        return ChatReply("all right", Usage(20, 2), model=request.model)

    async def models(self) -> tuple[str, ...]:
        return ("simulated",)

    async def aclose(self) -> None: ...


def cost(calls: int) -> Mapping[str, float]:
    """The cost of validating a seed on this many examples at once, through the whole engine. Needs a process of its
    own.
    """
    server, before = Together(), peak_mb()
    settings = {
        "preset": "plain",
        "clock": "virtual",
        "llm": {"backend": "sim", "concurrency": calls, "timeout_seconds": 10 * ANSWER_SECONDS},
        "budget": {"rollouts": calls},
        "held_out": False,
    }
    config = parse_config(settings, "bench.scale")
    plan = make_plan(config, ProvidedObjects(Trivial(validation=calls)), opens_roles=partial(served_by, server))
    began = time.process_time()
    clock.run(run_plan, plan, None, Watchers(), None, clock="virtual")
    seconds = time.process_time() - began
    return {"open": server.peak, "cpu_ms": 1000 * seconds / calls, "mb": peak_mb() - before}
