"""The gate in front of the LLM backends: one place that bounds and orders the requests of a whole run.

A slot is never lost and never given twice, whatever is cancelled: requests in flight are at most ``limit`` (after it
was lowered, as soon as the surplus has finished), and nobody waits while a slot is free. Whose turn it is, a policy
says (`flowevolve.llm.line.Order`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

from flowevolve.clock import now
from flowevolve.errors import InputError
from flowevolve.llm.line import Ask, ByRank, Group, Line, Order


@dataclass(frozen=True, slots=True)
class GateStats:
    """``mean_in_flight`` is over the time since the gate's first request."""

    limit: int
    in_flight: int
    waiting: int
    peak: int
    mean_in_flight: float


class Gate:
    """At most ``limit`` slots at a time, by rank unless another ``order`` is given. To be used from one event loop.

    Entering and leaving cost O(log n) in the number of those who wait.

    Raises:
        InputError: if the limit is below 1.
    """

    def __init__(self, limit: int, order: Order | None = None) -> None:
        self._limit = _checked(limit)
        self.order = ByRank() if order is None else order
        self._line = Line(self.order)
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

    def slot(self, ask: Ask) -> Slot:
        """Wait for a slot and hold it for the length of an ``async with``.

        Gives how many requests of its group wait or are in flight at that moment, this one included.
        """
        return Slot(self, ask)

    def remaining(self, group: str) -> int:
        """How many requests of a group wait or are in flight."""
        return self._line.remaining(group)

    def stats(self) -> GateStats:
        """The figures up to now. To be called in the event loop, whose clock they go by."""
        mean = float(self._in_flight)
        if self._opened is not None:
            self._account()
            lifetime = self._changed - self._opened
            mean = self._slot_seconds / lifetime if lifetime > 0 else mean
        return GateStats(self._limit, self._in_flight, len(self._line), self._peak, mean)

    async def enter(self, ask: Ask) -> Group:
        """Wait for a slot; whoever gets one must `leave` it. `slot` does both."""
        # A free slot means that nobody waits, so there is no line to respect.
        if self._in_flight < self._limit:
            self._occupy()
            return self._line.skip(ask)
        waiter = self._line.join(ask)
        try:
            await waiter.admitted.wait()
        except BaseException:
            if waiter.admitted.is_set():
                self.leave(waiter.group)  # cancelled with the slot in hand: it goes to the next in line
            else:
                self._line.forget(waiter)
            raise
        return waiter.group

    def leave(self, group: Group) -> None:
        """Give a slot back."""
        self._account()
        self._in_flight -= 1
        self._line.left(group)
        self._admit()

    def _admit(self) -> None:
        while self._line and self._in_flight < self._limit:
            waiter = self._line.take()
            self._occupy()
            waiter.admitted.set()

    def _occupy(self) -> None:
        self._account()
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)

    def _account(self) -> None:
        time = now()
        if self._opened is None:
            self._opened = time
        else:
            self._slot_seconds += self._in_flight * (time - self._changed)
        self._changed = time


class Slot:
    """A place at the gate for one request."""

    __slots__ = ("_ask", "_gate", "_group")

    def __init__(self, gate: Gate, ask: Ask) -> None:
        self._gate = gate
        self._ask = ask

    async def __aenter__(self) -> int:
        self._group = await self._gate.enter(self._ask)
        return self._group.remaining

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._gate.leave(self._group)


def _checked(limit: int) -> int:
    if limit < 1:
        raise InputError(f"the concurrency limit is {limit}: at least 1 request must be allowed in flight")
    return limit
