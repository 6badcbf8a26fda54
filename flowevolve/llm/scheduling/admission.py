"""Admission control: how many requests may be in flight, adapted to what the server can take.

A control loop polls the server's load every few seconds, as servers don't report it by themselves. It passes the sample
to a policy and sets the scheduler's limit to the policy's decision.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import anyio

from flowevolve._util.errors import EngineError, policy_error
from flowevolve._util.json_types import JSON
from flowevolve.core.events import Log
from flowevolve.core.server_event_kinds import AdmissionChanged, ServerLooked
from flowevolve.llm.scheduling.response_times import ResponseTimes
from flowevolve.llm.scheduling.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """The load that a server reports, other clients' requests included. A figure that it does not report is None."""

    running: int
    """Requests that it works on."""
    waiting: int
    """Requests in the server's own queue."""
    cache_usage: float | None = None
    """The used part of its KV cache, from 0 to 1."""
    prefix_queries: float | None = None
    """Prompt tokens looked up in its prefix cache since the server started."""
    prefix_hits: float | None = None
    """Prompt tokens found in its prefix cache since the server started."""
    cache_tokens: int | None = None
    """The tokens that its prefix cache holds; 0 if it has none."""

    @property
    def prefix_hit_rate(self) -> float | None:
        return self.prefix_hits / self.prefix_queries if self.prefix_queries and self.prefix_hits is not None else None


class Probe(Protocol):
    """Asks a server for its load."""

    async def load(self) -> ServerLoad | None:
        """The server's load, or None if it is not available now. Raises nothing."""
        ...


class NullProbe:
    """A probe without figures, for policies that go by response times alone."""

    async def load(self) -> ServerLoad | None:
        return None


@dataclass(frozen=True, slots=True)
class LoadSample:
    """What an admission policy decides by. The fields from ``answered`` on cover the calls since the last sample."""

    now: float
    """Seconds on the event loop's clock."""
    limit: int
    most: int
    """The highest limit allowed."""
    in_flight: int
    waiting: int
    """Requests that wait in our own scheduler."""
    server: ServerLoad | None = None
    answered: int = 0
    refused: int = 0
    """Attempts that the server refused because it is overloaded."""
    latency_seconds: float | None = None
    """The time in flight of a call whose answer has the mean length; None if no call was answered."""
    wait_seconds: float | None = None
    """The part of the latency that does not depend on the answer's length; None where it can't be estimated."""
    seconds_per_token: float | None = None
    """The latency divided by the mean length of an answer in tokens."""

    @property
    def used_up(self) -> bool:
        """Whether the limit holds requests back: with a higher one, more would be sent."""
        return self.waiting > 0 and self.in_flight >= self.limit


@dataclass(frozen=True, slots=True)
class LimitDecision:
    """The limit that a policy decided on, and its reason, for the log."""

    limit: int
    reason: str


class Admission(Protocol):
    """A policy for how many requests may be in flight. It may keep state from earlier samples of the same run."""

    def first(self, most: int) -> int:
        """The limit to begin with, which is clipped to between 1 and ``most``."""
        ...

    def decide(self, load: LoadSample) -> LimitDecision:
        """The limit from now on, which the control loop clips to between 1 and ``load.most``."""
        ...


@dataclass(slots=True)
class LoadSummary:
    """The server's load over a run: means over the samples it answered, token counts since the first one."""

    samples: int = 0
    mean_running: float = 0.0
    mean_waiting: float = 0.0
    mean_cache_usage: float | None = None
    prefix_queries: float = 0.0
    prefix_hits: float = 0.0
    restarts: int = 0
    """How often a server that we keep alive was restarted."""
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
    """How much a counter has grown, if its server resets it to zero when it restarts."""
    if now is None:
        return 0.0
    return now if before is None or now < before else now - before


def first_limit(policy: Admission, most: int) -> int:
    """The limit that a policy begins with.

    Raises:
        EngineError: if the policy raised an error, or returned anything but a whole number.
    """
    try:
        first: object = policy.first(most)
    except Exception as error:
        raise policy_error("admission", policy, error) from error
    if isinstance(first, int):
        return _clipped(first, most)
    raise EngineError(f"admission policy {type(policy).__name__} begins with {first!r:.80}; return a whole number")


async def run_admission_control(
    scheduler: Scheduler,
    policy: Admission,
    probe: Probe,
    response_times: ResponseTimes,
    *,
    most: int,
    interval_seconds: float,
    log: Log,
    observed: LoadSummary | None = None,
) -> None:
    """Adapt the limit every ``interval_seconds``, until cancelled.

    Logs the server's load as ``server.load`` and each change of the limit as ``admission.changed``.

    Raises:
        EngineError: if the policy raised an error, or returned anything but a decision on a whole number.
    """
    while True:
        await anyio.sleep(interval_seconds)
        server = await probe.load()
        if server is not None:
            log(ServerLooked(server.running, server.waiting, server.cache_usage, server.prefix_hit_rate))
            if observed is not None:
                observed.add(server)
        stats, seen = scheduler.stats(), response_times.take_sample()
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
        verdict = _decided(policy, load)
        limit = _clipped(verdict.limit, most)
        if limit != stats.limit:
            scheduler.limit = limit
            log(_change(load, limit, verdict.reason))


def _decided(policy: Admission, load: LoadSample) -> LimitDecision:
    try:
        verdict: object = policy.decide(load)
    except Exception as error:
        raise policy_error("admission", policy, error) from error
    if isinstance(verdict, LimitDecision) and isinstance(verdict.limit, int):
        return verdict
    raise EngineError(
        f"admission policy {type(policy).__name__} returned {verdict!r:.80}; "
        "return a LimitDecision, whose limit is a whole number"
    )


def _clipped(limit: int, most: int) -> int:
    return max(1, min(limit, most))


def _change(load: LoadSample, limit: int, reason: str) -> AdmissionChanged:
    server = (None, None) if load.server is None else (load.server.running, load.server.waiting)
    return AdmissionChanged(limit, load.limit, reason, load.in_flight, load.waiting, *server)
