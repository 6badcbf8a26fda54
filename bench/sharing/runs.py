"""Several runs at once on one simulated server, behind a gateway or without one, on one virtual clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial

import anyio

from bench._lib.methods.figures import tokens_within
from bench._lib.methods.recording import Span
from bench._lib.methods.recording_server import shaped
from bench._lib.methods.virtual import RecordingBackend
from bench._lib.methods.workloads import WORKLOADS, Pipeline
from bench._lib.served import served_by
from bench.scale.replicas import PRESET, PROFILE, WORKLOAD, settings
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.model import ChatReply, ChatRequest, LLMError, Transport, UnreachableError
from flowevolve.gateway.gateway import Gateway
from flowevolve.llm.transports.sender import Sender
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.run import Watchers, run_plan

SLOTS = 256
"""The most requests from all runs together that the server gets at a time behind a gateway."""
WARM_UP, WINDOW = 120.0, 480.0
"""Seconds of the server's time: before counting begins, and while it lasts."""
AFTER = 60.0
"""Seconds that the runs go on afterwards, so that all answers that were being written are known."""

_whose = ContextVar[str]("whose")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One of the runs."""

    preset: str = PRESET
    width: int = 4
    """The run has 64 requests open for each unit of width, and with the first preset flows and workers for them."""
    share: float = 1.0


@dataclass(slots=True)
class Shared:
    """The results of the runs."""

    spans: Mapping[str, Sequence[Span]]
    """For each run, the requests that the server worked on, with their times."""
    waits: Sequence[float]
    """For each request sent within the window, the seconds until it ended."""
    proposals: Sequence[int]
    failures: int
    most_in_flight: int

    def tokens_per_second(self) -> list[float]:
        """The tokens per second of each run, within the window."""
        begin, end = WARM_UP, WARM_UP + WINDOW
        return [sum(tokens_within(span, begin, end) for span in spans) / WINDOW for spans in self.spans.values()]


class _Server(RecordingBackend):
    """Keeps the spans of each run separately."""

    def __init__(self) -> None:
        super().__init__(shaped(PROFILE, WORKLOAD, 1.0))
        self.by_run: dict[str, list[Span]] = defaultdict(list)
        self.in_flight = self.most_in_flight = 0

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await super().chat(request, timeout=timeout)
        finally:
            self.in_flight -= 1
            self.by_run[_whose.get()].append(self.spans.pop())  # the span of this call, which has just ended


@dataclass(slots=True)
class _Way:
    """A run's way to the server."""

    server: _Server
    gateway: Gateway | None
    sender: Sender
    waits: list[float] = field(default_factory=list)
    failures: int = 0

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        _whose.set(self.sender.run)
        begun = clock.now()
        try:
            if self.gateway is None:
                return await self.server.chat(request, timeout=timeout)
            with anyio.fail_after(timeout):  # includes the wait in the gateway, as over HTTP
                return await self.gateway.chat(self.sender, request, timeout=timeout)
        except TimeoutError:
            self.failures += 1
            raise UnreachableError("no answer in time") from None
        except LLMError:
            self.failures += 1
            raise
        finally:
            if WARM_UP < begun <= WARM_UP + WINDOW:
                self.waits.append(clock.now() - begun)

    async def models(self) -> tuple[str, ...]:
        return await self.server.models()

    async def aclose(self) -> None:
        pass


def share_out(runs: Sequence[Wanted], seed: int, *, gateway: bool) -> Shared:
    """Let these runs work on one server at once."""
    server = _Server()
    shared = Gateway(server, SLOTS) if gateway else None
    ways = [_Way(server, shared, Sender(f"run-{number}", run.share)) for number, run in enumerate(runs)]
    proposals = [0] * len(runs)

    async def work(number: int) -> None:
        proposals[number] = await _evolve(runs[number], ways[number], seed * len(runs) + number)

    async def go() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(len(runs)):
                tasks.start_soon(work, number)

    clock.run(go, clock="virtual")
    return Shared(
        {way.sender.run: server.by_run[way.sender.run] for way in ways},
        [wait for way in ways for wait in way.waits],
        proposals,
        sum(way.failures for way in ways),
        server.most_in_flight,
    )


async def _evolve(run: Wanted, way: Transport, seed: int) -> int:
    config = parse_config(settings(run.width, seed, WARM_UP + WINDOW + AFTER, run.preset), "bench.sharing")
    plan = make_plan(config, ProvidedObjects(Pipeline(WORKLOADS[WORKLOAD])), opens_roles=partial(served_by, way))
    return (await run_plan(plan, None, Watchers(), None)).proposals
