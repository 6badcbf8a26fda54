"""The scheduler in front of the LLM backends: the one place that bounds and orders the requests of a whole run.

Invariants, whatever is cancelled: at most ``limit`` requests are in flight (after the limit was lowered, as soon as the
surplus has finished), no request waits while a slot is free, and no slot is lost or given twice. A policy decides which
request goes next (`flowevolve.llm.scheduling.request_queue.Order`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from flowevolve._util.clock import now
from flowevolve._util.errors import InputError
from flowevolve._util.gauge import Gauge
from flowevolve.llm.scheduling.request_queue import ByRank, Group, Order, QueuedRequest, RequestQueue


@dataclass(frozen=True, slots=True)
class SchedulerStats:
    """Counts of requests. ``mean_in_flight`` is the mean over the time since the first request."""

    limit: int
    in_flight: int
    waiting: int
    peak: int
    mean_in_flight: float


class Scheduler:
    """Gives out at most ``limit`` slots at a time, by rank unless another ``order`` is given. For one event loop.

    Entering and leaving take O(log n) time for n waiting requests.

    Raises:
        InputError: if the limit is below 1.
    """

    def __init__(self, limit: int, order: Order | None = None) -> None:
        self._limit = _checked(limit)
        self.order = ByRank() if order is None else order
        self._queue = RequestQueue(self.order)
        self._in_flight = Gauge(now, began=0.0)  # there may be no event loop yet; the first request restarts it
        self._peak = 0

    @property
    def limit(self) -> int:
        """How many requests may be in flight. Raising the limit admits waiting requests at once."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = _checked(limit)
        self._admit()

    def permit(self, request: QueuedRequest) -> Permit:
        """An async context manager that waits for a slot and holds it until the block ends.

        Its value is the number of requests of the group that wait or are in flight then, this one included.
        """
        return Permit(self, request)

    def remaining(self, group: str) -> int:
        """The number of requests of a group that wait or are in flight."""
        return self._queue.remaining(group)

    def stats(self) -> SchedulerStats:
        """The figures up to now, by the clock of the event loop that this must be called in."""
        in_flight = self._in_flight
        return SchedulerStats(self._limit, in_flight.value, len(self._queue), self._peak, in_flight.mean())

    async def enter(self, request: QueuedRequest) -> Group:
        """Wait for a slot, which the caller must give back with `leave`. `permit` does both."""
        # If a slot is free, no request waits, so none is overtaken.
        if self._in_flight.value < self._limit:
            self._occupy()
            return self._queue.skip(request)
        waiter = self._queue.join(request)
        try:
            await waiter.admitted.wait()
        except BaseException:
            if waiter.admitted.is_set():
                self._queue.give_back()
                self.leave(waiter.group)  # cancelled after it was given the slot, which goes to the next request
            else:
                self._queue.forget(waiter)
            raise
        self._queue.sent(waiter.group)
        return waiter.group

    def leave(self, group: Group) -> None:
        """Give a slot back."""
        self._in_flight.add(-1)
        self._queue.left(group)
        self._admit()

    def _admit(self) -> None:
        while self._queue and self._in_flight.value < self._limit:
            waiter = self._queue.take()
            self._occupy()
            waiter.admitted.set()

    def _occupy(self) -> None:
        if not self._peak:
            self._in_flight.restart()
        self._in_flight.add(1)
        self._peak = max(self._peak, self._in_flight.value)


class Permit:
    """The context manager that `Scheduler.permit` returns."""

    __slots__ = ("_group", "_request", "_scheduler")

    def __init__(self, scheduler: Scheduler, request: QueuedRequest) -> None:
        self._scheduler = scheduler
        self._request = request

    async def __aenter__(self) -> int:
        self._group = await self._scheduler.enter(self._request)
        return self._group.remaining

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._scheduler.leave(self._group)


def _checked(limit: int) -> int:
    if limit < 1:
        raise InputError(f"the limit on requests in flight is {limit}, but has to be at least 1")
    return limit
