"""Admission: how many requests may be in flight, following what the server can take.

A control loop looks at the server every few seconds (it can only be asked, it tells nothing by itself), hands the facts
to a policy and sets the gate's limit to its answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import anyio

from flowevolve.event_kinds import AdmissionChanged, ServerLooked
from flowevolve.events import Log
from flowevolve.llm.gate import Gate
from flowevolve.llm.pace import Pace
from flowevolve.llm.types import JSON


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """What a server says of itself, whoever sent the requests; None where it does not say."""

    running: int
    """Requests it works on."""
    waiting: int
    """Requests in its own queue."""
    cache_usage: float | None = None
    """Of its KV cache, from 0 to 1."""
    prefix_queries: float | None = None
    """Prompt tokens looked up in its prefix cache since it was started."""
    prefix_hits: float | None = None
    """Those of them that were there."""

    @property
    def prefix_hit_rate(self) -> float | None:
        return self.prefix_hits / self.prefix_queries if self.prefix_queries and self.prefix_hits is not None else None


class Probe(Protocol):
    """Asks a server for its load."""

    async def load(self) -> ServerLoad | None:
        """None if it can't be had now; never an exception."""
        ...


class Blind:
    """A probe that sees nothing, for policies that go by how fast answers come."""

    async def load(self) -> ServerLoad | None:
        return None


@dataclass(frozen=True, slots=True)
class Load:
    """The facts at one look. What was observed is over the calls that ended since the last look."""

    now: float
    limit: int
    most: int
    """The highest limit allowed."""
    in_flight: int
    waiting: int
    """At the gate."""
    server: ServerLoad | None = None
    answered: int = 0
    refused: int = 0
    """Attempts turned away because the server has too much to do."""
    latency_seconds: float | None = None
    """Time in flight of a call with an answer of the usual length; None if no call was answered."""
    wait_seconds: float | None = None
    """The part of it that does not depend on the answer's length; None where the calls don't tell it."""
    seconds_per_token: float | None = None
    """Time in flight over output tokens."""

    @property
    def used_up(self) -> bool:
        """Whether more would be sent if the limit were higher."""
        return self.waiting > 0 and self.in_flight >= self.limit


@dataclass(frozen=True, slots=True)
class Verdict:
    """A limit and why."""

    limit: int
    reason: str


class Admission(Protocol):
    """How many requests may be in flight. Told all it goes by; it may remember earlier looks, of one run."""

    def first(self, most: int) -> int:
        """The limit to begin with."""
        ...

    def decide(self, load: Load) -> Verdict:
        """The limit from now on; it is held between 1 and ``load.most``."""
        ...


@dataclass(slots=True)
class Observed:
    """What the looks at a server saw: means are over the looks that it answered, tokens from the first of them on."""

    looks: int = 0
    mean_running: float = 0.0
    mean_waiting: float = 0.0
    mean_cache_usage: float | None = None
    prefix_queries: float = 0.0
    prefix_hits: float = 0.0
    restarts: int = 0
    """Of a server that we keep alive."""
    _last: ServerLoad | None = field(default=None, init=False, repr=False)

    def add(self, load: ServerLoad) -> None:
        self.looks += 1
        self.mean_running += (load.running - self.mean_running) / self.looks
        self.mean_waiting += (load.waiting - self.mean_waiting) / self.looks
        if load.cache_usage is not None:
            before = self.mean_cache_usage or 0.0
            self.mean_cache_usage = before + (load.cache_usage - before) / self.looks
        if self._last is not None:
            self.prefix_queries += growth(self._last.prefix_queries, load.prefix_queries)
            self.prefix_hits += growth(self._last.prefix_hits, load.prefix_hits)
        self._last = load

    def to_json(self) -> dict[str, JSON]:
        return {
            "looks": self.looks,
            "mean_running": self.mean_running,
            "mean_waiting": self.mean_waiting,
            "mean_cache_usage": self.mean_cache_usage,
            "prefix_hit_rate": self.prefix_hits / self.prefix_queries if self.prefix_queries else None,
            "restarts": self.restarts,
        }


def growth(before: float | None, now: float | None) -> float:
    """Of a counter that starts at zero again with its server."""
    if now is None:
        return 0.0
    return now if before is None or now < before else now - before


async def follow_server(
    gate: Gate,
    policy: Admission,
    probe: Probe,
    pace: Pace,
    *,
    most: int,
    interval_seconds: float,
    log: Log,
    observed: Observed | None = None,
) -> None:
    """Look every ``interval_seconds``, for ever, and log what was seen as ``server.load``, and each change of the limit
    as ``admission.changed``.
    """
    while True:
        await anyio.sleep(interval_seconds)
        server = await probe.load()
        if server is not None:
            log(ServerLooked(server.running, server.waiting, server.cache_usage, server.prefix_hit_rate))
            if observed is not None:
                observed.add(server)
        stats, seen = gate.stats(), pace.look()
        load = Load(
            anyio.current_time(),
            stats.limit,
            most,
            stats.in_flight,
            stats.waiting,
            server,
            seen.answered,
            seen.refused,
            seen.latency_seconds,
            seen.wait_seconds,
            seen.seconds_per_token,
        )
        verdict = policy.decide(load)
        limit = max(1, min(verdict.limit, most))
        if limit != stats.limit:
            gate.limit = limit
            log(_change(load, limit, verdict.reason))


def _change(load: Load, limit: int, reason: str) -> AdmissionChanged:
    server = (None, None) if load.server is None else (load.server.running, load.server.waiting)
    return AdmissionChanged(limit, load.limit, reason, load.in_flight, load.waiting, *server)
