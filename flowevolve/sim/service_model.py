"""When a simulated server answers: discrete-event models of a batching server and of a rate-limited API.

Time is the event loop's. The batching model keeps one count of decode steps for the whole batch: all running requests
advance together, so a request that enters at step s ends at step s + its length. Work is done only when a request
arrives, ends or is cancelled, never for the steps between, even where contexts make each step a little longer than the
one before. The prefill of a prompt stalls the whole batch by its cost, since its tokens share the next steps.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Protocol

import anyio

from flowevolve._util import clock
from flowevolve.core.model import CHARS_PER_TOKEN, OverloadedError
from flowevolve.sim.profiles import APIProfile, BatchingProfile, Profile

BLOCK_TOKENS = 16


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text at `CHARS_PER_TOKEN` characters each; at least one."""
    return max(1, -(-len(text) // CHARS_PER_TOKEN))


@dataclass(frozen=True, slots=True)
class Served:
    """How one request was served. Times are in seconds."""

    queue_seconds: float
    latency_seconds: float
    cached_tokens: int


@dataclass(slots=True)
class ServiceStats:
    """A server's present load (``running`` and ``waiting`` requests) and its totals since it started."""

    running: int = 0
    waiting: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    finished: int = 0
    refused: int = 0


OnBegin = Callable[[float], None]
"""Called with the seconds that writing the answer will take at the present load. It must not block."""


class Service(Protocol):
    """Decides when each request is answered, in the event loop's time."""

    stats: ServiceStats

    async def serve(
        self, prompt: str, output_tokens: int, priority: int, rng: random.Random, on_begin: OnBegin | None = None
    ) -> Served:
        """Return when the answer would be complete. A cancelled request frees its place in the batch at once.

        ``on_begin`` is called when the first token is about to be written; never for a request that is refused.

        Raises:
            OverloadedError: if a rate limit is reached.
        """
        ...


def make_service(profile: Profile) -> Service:
    return BatchingService(profile) if isinstance(profile, BatchingProfile) else APIService(profile)


class PrefixCache:
    """The prompt prefixes seen lately, in blocks of `BLOCK_TOKENS`; the least recently used block is dropped first."""

    def __init__(self, blocks: int) -> None:
        self._capacity = blocks
        self._blocks: dict[int, None] = {}

    def take(self, prompt: str) -> int:
        """Return how many tokens of the prompt are cached already, and cache the whole prompt."""
        chars = BLOCK_TOKENS * CHARS_PER_TOKEN
        chain = hits = 0
        hitting = True
        for start in range(0, len(prompt) - chars + 1, chars):
            chain = hash((chain, prompt[start : start + chars]))
            hitting = hitting and chain in self._blocks
            hits += hitting
            self._blocks.pop(chain, None)
            self._blocks[chain] = None
        while len(self._blocks) > self._capacity:
            del self._blocks[next(iter(self._blocks))]
        return hits * BLOCK_TOKENS


@dataclass(eq=False, slots=True)
class _Request:
    """A request that waits in the queue or runs in the batch. Queue and batch are ordered by its unique ``key``."""

    prompt: str
    prompt_tokens: int
    output_tokens: int
    key: tuple[int, int]
    on_begin: OnBegin | None
    started: float = math.nan
    first_step: float = 0.0
    cached: int = 0
    cancelled: bool = False
    done: anyio.Event = field(default_factory=anyio.Event)


class BatchingService:
    """A continuously batching server."""

    def __init__(self, profile: BatchingProfile) -> None:
        self.stats = ServiceStats()
        self._profile = profile
        self._cache = PrefixCache(profile.cache_blocks)
        self._queue: list[tuple[tuple[int, int], _Request]] = []
        self._batch: list[tuple[float, tuple[int, int], _Request]] = []
        self._steps = 0.0
        self._context = 0.0
        """The tokens that all running requests have in their contexts."""
        self._stall_seconds = 0.0
        self._updated = 0.0
        self._arrivals = 0
        self._timer: asyncio.TimerHandle | None = None

    async def serve(
        self, prompt: str, output_tokens: int, priority: int, rng: random.Random, on_begin: OnBegin | None = None
    ) -> Served:
        arrived = clock.now()
        self._advance(arrived)
        self._arrivals += 1
        request = _Request(prompt, count_tokens(prompt), output_tokens, (priority, self._arrivals), on_begin)
        heappush(self._queue, (request.key, request))
        self.stats.waiting += 1
        self._schedule()
        try:
            await request.done.wait()
        except BaseException:
            if not request.done.is_set():
                self._cancel(request)
            raise
        return Served(request.started - arrived, clock.now() - arrived, request.cached)

    def _step_seconds(self) -> float:
        """The seconds that the next step takes."""
        return self._profile.seconds_of_step(self.stats.running) + (
            self._profile.context_seconds_per_token * self._context
        )

    def _seconds_for(self, steps: float) -> float:
        """The seconds that this many steps take at this load. Each takes longer than the one before by what that one
        added to contexts.
        """
        growth = self._profile.context_seconds_per_token * self.stats.running
        return steps * (self._step_seconds() + growth * steps / 2)

    def _steps_in(self, seconds: float) -> float:
        """How many steps are taken in this many seconds at this load: the inverse of `_seconds_for`."""
        first = self._step_seconds()
        growth = self._profile.context_seconds_per_token * self.stats.running
        if growth == 0.0:
            return seconds / first
        return 2 * seconds / (first + math.sqrt(first * first + 2 * growth * seconds))

    def _advance(self, now: float) -> None:
        """Bring the count of steps up to now. No request can have ended in between: the timer would have fired."""
        elapsed = now - self._updated
        stalled = min(elapsed, self._stall_seconds)
        self._stall_seconds -= stalled
        if self.stats.running:
            steps = self._steps_in(elapsed - stalled)
            self._steps += steps
            self._context += steps * self.stats.running
        self._updated = now

    def _schedule(self) -> None:
        """Start queued requests while the batch has room, then set the timer to the next end."""
        while self._queue and self.stats.running < self._profile.max_num_seqs:
            _, request = heappop(self._queue)
            if not request.cancelled:
                self._start(request)
        while self._batch and self._batch[0][2].cancelled:
            heappop(self._batch)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._batch:
            # A bare timer, not a task: it only touches this object, and can't fail or outlive its use.
            left = self._seconds_for(max(0.0, self._batch[0][0] - self._steps))
            when = self._updated + self._stall_seconds + left
            self._timer = clock.running_loop().call_at(when, self._on_timer)

    def _start(self, request: _Request) -> None:
        self.stats.waiting -= 1
        self.stats.running += 1
        request.started, request.first_step = self._updated, self._steps
        tokens = request.prompt_tokens
        self._context += tokens
        request.cached = min(self._cache.take(request.prompt), tokens - 1)
        self._stall_seconds += (tokens - request.cached) * self._profile.prefill_seconds_per_token
        heappush(self._batch, (self._steps + request.output_tokens, request.key, request))
        self.stats.prompt_tokens += tokens
        self.stats.cached_tokens += request.cached
        if request.on_begin is not None:
            request.on_begin(self._stall_seconds + self._seconds_for(request.output_tokens))

    def _on_timer(self) -> None:
        self._timer = None
        self._advance(clock.now())
        while self._batch and (self._batch[0][2].cancelled or self._batch[0][0] <= self._steps + 1e-6):
            _, _, request = heappop(self._batch)
            if not request.cancelled:
                self._leave(request)
                self.stats.finished += 1
                self.stats.output_tokens += request.output_tokens
                request.done.set()
        self._schedule()

    def _cancel(self, request: _Request) -> None:
        self._advance(clock.now())
        request.cancelled = True
        if math.isnan(request.started):
            self.stats.waiting -= 1
        else:
            self._leave(request)
        self._schedule()

    def _leave(self, request: _Request) -> None:
        self.stats.running -= 1
        self._context -= request.prompt_tokens + self._steps - request.first_step
        if not self.stats.running:
            self._context = 0.0  # rid of rounding errors


class _TokenBucket:
    """A token bucket that holds at most one minute's allowance."""

    def __init__(self, per_minute: float) -> None:
        self._per_minute = per_minute
        self._level = per_minute
        self._updated: float | None = None

    def wait_for(self, amount: float, now: float) -> float:
        """Return the seconds until ``amount`` is available; 0 if it is available now."""
        if math.isinf(self._per_minute):
            return 0.0
        elapsed = 0.0 if self._updated is None else now - self._updated
        self._level = min(self._per_minute, self._level + elapsed * self._per_minute / 60)
        self._updated = now
        return max(0.0, (min(amount, self._per_minute) - self._level) * 60 / self._per_minute)

    def take(self, amount: float) -> None:
        if not math.isinf(self._per_minute):
            self._level -= amount


class APIService:
    """A remote API with rate limits, whose latency does not depend on its load."""

    def __init__(self, profile: APIProfile) -> None:
        self.stats = ServiceStats()
        self._profile = profile
        self._requests = _TokenBucket(profile.requests_per_minute)
        self._tokens = _TokenBucket(profile.tokens_per_minute)

    async def serve(
        self, prompt: str, output_tokens: int, priority: int, rng: random.Random, on_begin: OnBegin | None = None
    ) -> Served:
        profile, arrived = self._profile, clock.now()
        tokens = count_tokens(prompt)
        wait = max(self._requests.wait_for(1, arrived), self._tokens.wait_for(tokens + output_tokens, arrived))
        if wait > 0:
            self.stats.refused += 1
            raise OverloadedError("rate limit reached", status=429, retry_after=wait)
        self._requests.take(1)
        self._tokens.take(tokens + output_tokens)
        first = profile.first_token_seconds * math.exp(profile.first_token_sigma * rng.gauss(0.0, 1.0))
        writing = output_tokens * profile.per_token_seconds
        self.stats.running += 1
        try:
            if on_begin is not None:
                await anyio.sleep(first)
                on_begin(writing)
            await anyio.sleep_until(arrived + first + writing)
        finally:
            self.stats.running -= 1
        self.stats.prompt_tokens += tokens
        self.stats.output_tokens += output_tokens
        self.stats.finished += 1
        return Served(0.0, clock.now() - arrived, 0)
