"""The gate in front of the LLM backends: one place that bounds and orders the requests of a whole run.

A slot is never lost and never given twice, whatever is cancelled: requests in flight are at most ``limit`` (after it
was lowered, as soon as the surplus has finished), and nobody waits while a slot is free. The lowest priority value
goes first, first come first served among equals.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import anyio

from flowevolve.errors import InputError


@dataclass(frozen=True, slots=True)
class GateStats:
    """``mean_in_flight`` is over the time since the gate's first request."""

    limit: int
    in_flight: int
    waiting: int
    peak: int
    mean_in_flight: float


class Gate:
    """At most ``limit`` slots at a time. To be used from one event loop.

    Entering and leaving cost O(log n) in the number of those who wait.

    Raises:
        InputError: if the limit is below 1.
    """

    def __init__(self, limit: int) -> None:
        self._limit = _checked(limit)
        self._line: list[_Waiter] = []
        self._left_line = 0
        self._arrivals = 0
        self._in_flight = self._peak = 0
        self._opened: float | None = None
        self._changed = self._slot_seconds = 0.0

    @property
    def limit(self) -> int:
        """How many requests may be in flight. Raising it lets waiting requests through at once."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = _checked(limit)
        self._admit()

    @asynccontextmanager
    async def slot(self, priority: int) -> AsyncGenerator[None]:
        """Wait for a slot and hold it for the length of an ``async with``."""
        await self._enter(priority)
        try:
            yield
        finally:
            self._leave()

    def stats(self) -> GateStats:
        """The figures up to now. To be called in the event loop, whose clock they go by."""
        mean = float(self._in_flight)
        if self._opened is not None:
            self._account()
            lifetime = self._changed - self._opened
            mean = self._slot_seconds / lifetime if lifetime > 0 else mean
        return GateStats(self._limit, self._in_flight, len(self._line) - self._left_line, self._peak, mean)

    async def _enter(self, priority: int) -> None:
        # A free slot means that nobody waits, so there is no line to respect.
        if self._in_flight < self._limit:
            self._occupy()
            return
        self._arrivals += 1
        waiter = _Waiter(priority, self._arrivals)
        heappush(self._line, waiter)
        try:
            await waiter.admitted.wait()
        except BaseException:
            if waiter.admitted.is_set():
                self._leave()  # cancelled with the slot in hand: it goes to the next in line
            else:
                self._forget(waiter)
            raise

    def _leave(self) -> None:
        self._account()
        self._in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        while self._line and self._in_flight < self._limit:
            waiter = heappop(self._line)
            if waiter.gone:
                self._left_line -= 1
            else:
                self._occupy()
                waiter.admitted.set()

    def _occupy(self) -> None:
        self._account()
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)

    def _forget(self, waiter: _Waiter) -> None:
        # Taking it out of the middle of a heap would cost O(n), so it stays until it surfaces or half the heap is gone.
        waiter.gone = True
        self._left_line += 1
        if 2 * self._left_line > len(self._line):
            self._line = [other for other in self._line if not other.gone]
            heapify(self._line)
            self._left_line = 0

    def _account(self) -> None:
        now = anyio.current_time()
        if self._opened is None:
            self._opened = now
        else:
            self._slot_seconds += self._in_flight * (now - self._changed)
        self._changed = now


class _Waiter:
    """One who waits, ordered by priority and then by arrival."""

    __slots__ = ("admitted", "gone", "key")

    def __init__(self, priority: int, arrival: int) -> None:
        self.key = (priority, arrival)
        self.admitted = anyio.Event()
        self.gone = False

    def __lt__(self, other: _Waiter) -> bool:
        return self.key < other.key


def _checked(limit: int) -> int:
    if limit < 1:
        raise InputError(f"the concurrency limit is {limit}: at least 1 request must be allowed in flight")
    return limit
