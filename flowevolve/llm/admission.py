"""Admission: how many requests may be in flight, following what the server can take.

A control loop looks at the server every few seconds (it can only be asked, it tells nothing by itself), hands the facts
to a policy and sets the gate's limit to its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import anyio

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


class NullProbe:
    """A probe that sees nothing, for policies that go by how fast answers come."""

    async def load(self) -> ServerLoad | None:
        return None


@dataclass(frozen=True, slots=True)
class LoadSample:
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
class LimitDecision:
    """A limit and why."""

    limit: int
    reason: str


class Admission(Protocol):
    """How many requests may be in flight. Told all it goes by; it may remember earlier looks, of one run."""

    def first(self, most: int) -> int:
        """The limit to begin with."""
        ...

    def decide(self, load: LoadSample) -> LimitDecision:
        """The limit from now on; it is held between 1 and ``load.most``."""
        ...


@dataclass(slots=True)
class LoadSummary:
    """What the looks at a server saw: means are over the looks that it answered, tokens from the first of them on."""

    samples: int = 0
    mean_running: float = 0.0
    mean_waiting: float = 0.0
    mean_cache_usage: float | None = None
    prefix_queries: float = 0.0
    prefix_hits: float = 0.0
    restarts: int = 0
    """Of a server that we keep alive."""
    _last: ServerLoad | None = field(default=None, init=False, repr=False)

    def add(self, load: ServerLoad) -> None:
        self.samples += 1
        self.mean_running += (load.running - self.mean_running) / self.samples
        self.mean_waiting += (load.waiting - self.mean_waiting) / self.samples
        if load.cache_usage is not None:
            before = self.mean_cache_usage or 0.0
            self.mean_cache_usage = before + (load.cache_usage - before) / self.samples
        if self._last is not None:
            self.prefix_queries += growth(self._last.prefix_queries, load.prefix_queries)
            self.prefix_hits += growth(self._last.prefix_hits, load.prefix_hits)
        self._last = load

    def to_json(self) -> dict[str, JSON]:
        return {
            "looks": self.samples,
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


Log = Callable[[str, Mapping[str, JSON]], None]


async def run_admission_control(
    gate: Gate,
    policy: Admission,
    probe: Probe,
    pace: Pace,
    *,
    most: int,
    interval_seconds: float,
    log: Log,
    observed: LoadSummary | None = None,
) -> None:
    """Look every ``interval_seconds``, for ever, and log what was seen as ``server.load``, and each change of the limit
    as ``admission.changed``.
    """
    while True:
        await anyio.sleep(interval_seconds)
        server = await probe.load()
        if server is not None:
            log("server.load", _seen(server))
            if observed is not None:
                observed.add(server)
        stats, seen = gate.stats(), pace.take_sample()
        load = LoadSample(
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
            log("admission.changed", _change(load, limit, verdict.reason))


def _seen(server: ServerLoad) -> dict[str, JSON]:
    return {
        "running": server.running,
        "waiting": server.waiting,
        "cache_usage": server.cache_usage,
        "prefix_hit_rate": server.prefix_hit_rate,
    }


def _change(load: LoadSample, limit: int, reason: str) -> dict[str, JSON]:
    return {
        "limit": limit,
        "before": load.limit,
        "reason": reason,
        "in_flight": load.in_flight,
        "waiting": load.waiting,
        "server_running": None if load.server is None else load.server.running,
        "server_waiting": None if load.server is None else load.server.waiting,
    }
