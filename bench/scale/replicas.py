"""A stream over many simulated replicas of one server, on the virtual clock, behind the router that a run has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

import anyio

from bench._lib.methods.figures import tokens_within
from bench._lib.methods.recording import Span
from bench._lib.methods.recording_server import shaped
from bench._lib.methods.virtual import RecordingBackend
from bench._lib.methods.workloads import WORKLOADS, Pipeline
from bench._lib.served import served_by
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.model import ChatReply, ChatRequest, UnreachableError
from flowevolve.llm.transports.router import Router
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.run import Watchers, run_plan

PROFILE, WORKLOAD, PRESET = "qwen3-8b-h100", "ifbench", "flashevolve"
IN_FLIGHT = 64
"""Calls in flight for each replica, at most."""
FLOWS = 32
"""Flows open for each replica: as many as the preset has for one server."""
WARM_UP, WINDOW = 60.0, 120.0
"""Seconds of the server's time: those before the window, which begin with the seed's validation, and those of the
window.
"""


AFTER = 30.0
"""Seconds that a run goes on after what is counted, so that the answers that are being written then are known."""


@dataclass(frozen=True, slots=True)
class Outage:
    """One replica is gone between these seconds, with all that it had."""

    begins: float = inf
    ends: float = inf


class Replica(RecordingBackend):
    """A simulated server that may die and come back with an empty cache for prompts in use."""

    def __init__(self, outage: Outage) -> None:
        super().__init__(shaped(PROFILE, WORKLOAD, 1.0))
        self._outage = outage

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        self._check_there()
        reply: ChatReply | None = None
        begun = clock.now()
        with anyio.CancelScope(deadline=self._outage.begins if begun < self._outage.begins else inf):
            reply = await super().chat(request, timeout=timeout)
        if reply is None:
            raise UnreachableError("the server died with the request")
        return reply

    async def models(self) -> tuple[str, ...]:
        self._check_there()
        return await super().models()

    def _check_there(self) -> None:
        if self._outage.begins <= clock.now() < self._outage.ends:
            raise UnreachableError("nothing listens there")


@dataclass(frozen=True, slots=True)
class Served:
    """What the replicas of one run did."""

    spans: Sequence[Sequence[Span]]
    """The calls of each replica."""
    proposals: int

    def tokens_per_second(self, begin: float, end: float) -> float:
        """The tokens per second that all replicas wrote, on average between these times."""
        return sum(tokens_within(span, begin, end) for spans in self.spans for span in spans) / (end - begin)

    def calls_per_second(self, begin: float, end: float) -> float:
        ended = sum(begin < span.ended <= end and span.tokens is not None for each in self.spans for span in each)
        return ended / (end - begin)

    def uneven(self, begin: float, end: float) -> float:
        """The tokens of the replica with the most, divided by the mean."""
        each = [sum(tokens_within(span, begin, end) for span in spans) for spans in self.spans]
        return max(each) * len(each) / sum(each)


def serve(replicas: int, seed: int, seconds: float, preset: str = PRESET, outage: Outage | None = None) -> Served:
    """Let a run work on this many replicas for this many of their seconds; the first replica has the outage."""
    servers = [Replica(outage or Outage()), *(Replica(Outage()) for _ in range(replicas - 1))]
    config = parse_config(settings(replicas, seed, seconds + AFTER, preset), "bench.scale")
    router = Router({f"http://replica{number}/v1": server for number, server in enumerate(servers)})
    plan = make_plan(config, ProvidedObjects(Pipeline(WORKLOADS[WORKLOAD])), opens_roles=partial(served_by, router))
    result = clock.run(run_plan, plan, None, Watchers(), None, clock="virtual")
    return Served([server.spans for server in servers], result.proposals)


def settings(replicas: int, seed: int, seconds: float, preset: str = PRESET) -> Mapping[str, object]:
    """The configuration of a run that has work for this many replicas, unless ``preset`` is not `PRESET`."""
    wide = {
        "algorithm": {"max_in_flight": FLOWS * replicas},
        "stages": {
            name: {"workers": 8 * replicas, "max_workers": 32 * replicas}
            for name in ("generate", "propose", "repair", "screen", "evaluate")
        },
    }
    return {
        "preset": preset,
        **(wide if preset == PRESET else {}),
        "seed": seed,
        "clock": "virtual",
        "drain_seconds": 0.0,
        "held_out": False,
        "llm": {"backend": "sim", "concurrency": IN_FLIGHT * replicas},
        "budget": {"seconds": seconds},
    }


def dips(served: Served, outage: Outage, seconds: float) -> Mapping[str, float]:
    """Tokens per second before an outage, during all of it, and after it once the replica has warmed up again."""
    return {
        "before": served.tokens_per_second(outage.begins - seconds, outage.begins),
        "away": served.tokens_per_second(outage.begins, outage.ends),
        "after": served.tokens_per_second(outage.ends + WARM_UP, outage.ends + WARM_UP + seconds),
    }
