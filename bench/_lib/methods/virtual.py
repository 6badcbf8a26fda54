"""Runs our own methods, and endless load, on the virtual clock: with the same simulated server as the peers, but in
this process.

On the virtual clock only the server takes time, so a run doesn't depend on how busy the machine is and leaves out what
our client costs. Runs against the server's process (`bench._lib.methods.presets.ON_REAL_TIME`) show how much
difference that makes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count

import anyio

from bench._lib.methods.presets import sections
from bench._lib.methods.process import CEILING, newer_seed
from bench._lib.methods.recording import Span, role_told_by
from bench._lib.methods.recording_server import PRESET, shaped
from bench._lib.methods.runs import WARM_UP, Run
from bench._lib.methods.workloads import WORKLOADS, Pipeline, Workload
from bench._lib.served import served_by
from bench.peers.ours import FOREVER, Watch
from bench.peers.progress import Kind
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.model import ChatReply, ChatRequest, Message
from flowevolve.core.task import Task
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.run import Watchers, run_plan
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import Profile
from flowevolve.sim.worlds.base import World
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld


def evolve(method: str, server: str, workload: str, *, concurrency: int, seed: int, seconds: float) -> Run:
    """Let one of our methods, or `CEILING`, work on a simulated server for ``seconds`` of its time after the seed is
    validated.
    """
    backend = RecordingBackend(shaped(server, workload, 1.0))
    return evolve_at(backend, method, WORKLOADS[workload], concurrency=concurrency, seed=seed, seconds=seconds)


def evolve_at(
    backend: RecordingBackend,
    method: str,
    workload: Workload,
    *,
    concurrency: int,
    seed: int,
    seconds: float,
    max_tokens: int | None = None,
) -> Run:
    """Do the same as `evolve`, but at this server and with answers of at most ``max_tokens``."""
    began = time.process_time()
    work = _load if method == CEILING else partial(_work, method, max_tokens)
    observed = _Observed(backend, Pipeline(workload), seconds)
    clock.run(observed.until_over, partial(work, observed, concurrency, seed), clock="virtual")
    seeded = observed.seeded
    return Run(
        method=method,
        workload=workload.name,
        start=WARM_UP * seconds,
        end=seconds,
        spans=tuple(
            replace(span, begun=span.begun - seeded, ended=span.ended - seeded) for span in observed.backend.spans
        ),
        accepted=tuple(
            (when - seeded, score) for kind, when, score in observed.told if kind == "accepted" and score is not None
        ),
        validated=observed.times("validated"),
        proposed=observed.times("proposed"),
        stopped=observed.times("stopped"),
        flows=len(observed.times("opened")),
        best=tuple((when - seeded, text) for when, text in observed.best),
        client_cpu=time.process_time() - began,
        server_cpu=0.0,
        speed=1.0,
    )


class RecordingBackend(SimBackend):
    """The simulated server, which keeps a span of every chat, as `bench._lib.methods.recording.Recorder` does."""

    def __init__(self, profile: Profile, world: World | None = None) -> None:
        super().__init__(world or RulesWorld(PRESETS[PRESET]), profile)
        self.spans: list[Span] = []

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        texts = [message.content for message in request.messages]
        begun, tokens = clock.now(), None
        try:
            reply = await super().chat(request, timeout=timeout)
            tokens = reply.usage.completion_tokens
            return reply
        finally:
            role, characters = role_told_by(texts[-1]), sum(map(len, texts))
            self.spans.append(Span(begun, clock.now(), role, characters, request.max_tokens, tokens))


class _Observed:
    """Keeps what a run reports, with the times of the virtual clock, and ends it ``seconds`` after its seed is
    validated.
    """

    def __init__(self, backend: RecordingBackend, task: Task, seconds: float) -> None:
        self.backend = backend
        self.task = task
        self.told: list[tuple[Kind, float, float | None]] = []
        self.best: list[tuple[float, str]] = []
        self.seeded = math.inf
        self._seconds = seconds
        self._scope: anyio.CancelScope | None = None

    def tell(self, kind: Kind, score: float | None = None, text: str | None = None) -> None:
        self.told.append((kind, clock.now(), score))
        if text is not None:
            self.best.append((clock.now(), text))
        if kind == "validated" and self.seeded == math.inf:
            self.seeded = clock.now()
            assert self._scope is not None
            self._scope.deadline = self.seeded + self._seconds

    async def until_over(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do ``work`` until the time is over."""
        with anyio.CancelScope() as self._scope:
            await work()
        if not self._scope.cancelled_caught:
            raise RuntimeError("a method ended by itself, before the time that was to be counted was over")

    def times(self, kind: Kind) -> tuple[float, ...]:
        return tuple(when - self.seeded for told, when, _ in self.told if told == kind)


async def _work(method: str, max_tokens: int | None, observed: _Observed, concurrency: int, seed: int) -> None:
    config = parse_config(
        {
            **sections(method),
            "seed": seed,
            "clock": "virtual",
            "llm": {"backend": "sim", "concurrency": concurrency, "max_tokens": max_tokens},
            "budget": FOREVER,
        },
        "bench",
    )
    plan = make_plan(config, ProvidedObjects(observed.task), opens_roles=partial(served_by, observed.backend))
    await run_plan(plan, None, Watchers(events=(Watch(observed.tell),)), None)


async def _load(observed: _Observed, concurrency: int, seed: int) -> None:
    """Keep the call of a rollout open in every slot all the time, as in `bench._lib.methods.process`."""
    numbers, seeds, task = count(), count(seed * 1_000_000), observed.task

    async def ask(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        request = ChatRequest(observed.backend.model, tuple(messages), max_tokens=max_tokens, seed=next(seeds))
        return (await observed.backend.chat(request, timeout=math.inf)).text

    async def work() -> None:
        for number in numbers:
            turn, place = divmod(number, len(task.data.val))
            await task.rollout(newer_seed(task, turn), task.data.val[place], ask)

    observed.tell("validated")  # no seed has to be validated first
    async with anyio.create_task_group() as tasks:
        for _ in range(concurrency):
            tasks.start_soon(work)
