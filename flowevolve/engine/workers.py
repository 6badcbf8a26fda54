"""The workers of one stage, hired and let go while the stage runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

import anyio

from flowevolve._util import clock
from flowevolve._util.gauge import Gauge
from flowevolve.core.graph import AnyStage
from flowevolve.core.policies import Place, StageLoad
from flowevolve.engine.counters import StageCounts
from flowevolve.engine.queue import QueueStats

T = TypeVar("T")


class _Totals(NamedTuple):
    """Running totals when the load was last asked for."""

    items_in: int
    items_out: int
    gaps: int
    depth_seconds: float


class WorkerPool:
    """The workers of one stage. A worker that is let go finishes its item first; an idle one leaves at once."""

    def __init__(self, stage: AnyStage) -> None:
        self.wanted = stage.workers
        self._name = stage.name
        self._least, self._stage_most = stage.bounds or (stage.workers, stage.workers)
        self._most = self._stage_most
        """The current upper bound, which may be higher than the stage's own."""
        self._present: set[int] = set()
        self._leaving: set[int] = set()
        self._idle: dict[int, anyio.CancelScope] = {}
        self.busy = Gauge(clock.now)
        """How many workers are working on an item."""
        self._before = _Totals(0, 0, 0, 0.0)

    @property
    def missing(self) -> int:
        """How many workers have to be hired."""
        return max(0, self.wanted - self._staying())

    def hire(self) -> int:
        """Add a worker; returns its number, the lowest that is free."""
        number = next(number for number in range(len(self._present) + 1) if number not in self._present)
        self._present.add(number)
        return number

    def disband(self) -> None:
        """Forget all workers, because they were cancelled. As many as are wanted are then missing."""
        self._present.clear()
        self._leaving.clear()

    def make_room(self, workers: int, least: int, *, hire: bool) -> int:
        """Set the upper bound to ``workers``, or to the stage's own bound if that is higher.

        With ``hire``, the stage wants ``workers`` workers from now on, and at least ``least``, within the bound.
        Otherwise it wants fewer if the bound requires that, and never more. Returns by how much the number changes.
        """
        self._most = max(self._stage_most, workers)
        by = min(max(least, workers), self._most) - self.wanted if hire else min(0, self._most - self.wanted)
        if by:
            self.resize(by)
        return by

    def resize(self, by: int) -> bool:
        """Change how many workers are wanted by ``by``; returns False if that would leave the stage's bounds."""
        if not self._least <= self.wanted + by <= self._most:
            return False
        self.wanted += by
        for number in sorted(self._idle, reverse=True):
            if self._staying() > self.wanted and number not in self._leaving:
                self._leaving.add(number)
                self._idle[number].cancel()
        return True

    def keeps(self, worker: int) -> bool:
        """Whether a worker that has no item should go on. If not, it counts as gone from now on."""
        if worker not in self._leaving and self._staying() > self.wanted:
            self._leaving.add(worker)
        if worker not in self._leaving:
            return True
        self._leaving.remove(worker)
        self._present.remove(worker)
        return False

    async def wait(self, worker: int, take: Callable[[], Awaitable[T]]) -> T | None:
        """Await ``take`` and return its result, or None if the worker was let go while it waited."""
        taken: T | None = None
        with anyio.CancelScope() as scope:
            self._idle[worker] = scope
            try:
                taken = await take()
            finally:
                del self._idle[worker]
        return taken

    def load(self, counts: StageCounts, queue: QueueStats, place: Place, seconds: float) -> StageLoad:
        """The load since the last call of this method, ``seconds`` ago."""
        before = self._before
        self._before = _Totals(counts.items_in, counts.items_out, counts.gaps, queue.depth_seconds)
        taken = counts.items_in - before.items_in
        return StageLoad(
            name=self._name,
            place=place,
            workers=self.wanted,
            least=self._least,
            most=self._most,
            busy=self.busy.take_mean(),
            waiting=(queue.depth_seconds - before.depth_seconds) / seconds,
            produced=counts.items_out - before.items_out,
            gap=(counts.gaps - before.gaps) / taken if taken else 0.0,
        )

    def _staying(self) -> int:
        return len(self._present) - len(self._leaving)
