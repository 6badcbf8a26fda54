"""The stream: every stage has its own bounded queue and its own workers, which run independently of other stages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import ceil

import anyio
from anyio.abc import TaskGroup

from flowevolve._util import clock
from flowevolve._util.errors import EngineError
from flowevolve.core.event_kinds import AllocationChanged, FlowLimitChanged
from flowevolve.core.graph import AnyStage
from flowevolve.core.item import Item
from flowevolve.core.policies import FlowBound, Place, Workload
from flowevolve.engine.dispatcher import Dispatcher
from flowevolve.engine.queue import ItemQueue, QueueStats
from flowevolve.engine.workers import WorkerPool


class Stream:
    """Every stage has a bounded queue and a pool of workers, which can be resized while they work."""

    def __init__(self, dispatcher: Dispatcher, bound: FlowBound, *, allocated: bool) -> None:
        """``allocated`` says whether a policy decides how many workers there are, within their bounds."""
        self._bound = bound
        self._allocated = allocated
        self._dispatcher = dispatcher
        self._queues = {
            stage.name: ItemQueue[Item[object]](stage.capacity, clock.now, stage.gather, stage.gather_key)
            for stage in dispatcher.graph.stages
        }
        self._departures = [(stage, stage.departs) for stage in dispatcher.graph.stages if stage.departs is not None]
        self._worker_pools = {stage.name: WorkerPool(stage) for stage in dispatcher.graph.stages}
        self._tasks: TaskGroup | None = None

    def start(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        for stage in self._dispatcher.graph.stages:
            self._queues[stage.name].drain()
            self._worker_pools[stage.name].disband()
            self._hire(stage)

    async def put(self, stage: str, item: Item[object]) -> None:
        await self._queues[stage].put(item)

    def put_back(self, stage: str, item: Item[object]) -> None:
        self._queues[stage].put_back(item)

    def put_together(self, stage: str, items: Sequence[Item[object]]) -> None:
        self._queues[stage].put_together(items)

    @property
    def width(self) -> int:
        limit = self._dispatcher.counters.flow_limit
        return 1 if limit is None else limit.flows

    def update_width(self) -> None:
        """Ask the policy, if a flow may be opened now."""
        dispatcher = self._dispatcher
        if len(dispatcher.flows) >= self.width:
            return
        before = dispatcher.counters.flow_limit
        facts = dispatcher.flow_facts()
        limit = self._bound.limit(facts, before)
        if limit != before:
            dispatcher.log(FlowLimitChanged(limit.flows, limit.reason))
        if facts.room is not None:
            self._follow_machines(ceil(facts.room))

    def _follow_machines(self, room: int) -> None:
        """Give stages whose rollouts run on machines one worker per item that the machines take at a time, and one
        more.
        """
        for stage in self._dispatcher.graph.stages:
            if not (stage.grows and self._dispatcher.counters.stages[stage.name].rollouts):
                continue
            workers = self._worker_pools[stage.name]
            by = workers.make_room(room + 1, stage.workers, hire=not self._allocated)
            if by:
                self._hire(stage)
                reason = f"the machines take the rollouts of {'one item' if room == 1 else f'{room} items'} at a time"
                self._dispatcher.log(AllocationChanged(stage.name, by, workers.wanted, reason))

    def set_workers(self, stage: str, workers: int) -> None:
        """Give a stage this many workers, as far as its bounds allow."""
        while (missing := workers - self.workers(stage)) and self.resize(stage, 1 if missing > 0 else -1):
            pass

    async def advance(self) -> None:
        if self._only_gathering():
            self._flush_first()
        else:
            self._let_depart()
        await self._dispatcher.changed.wait()

    def queue_stats(self, stage: str) -> QueueStats | None:
        return self._queues[stage].stats()

    def workers(self, stage: str) -> int:
        return self._worker_pools[stage].wanted

    def resize(self, stage: str, by: int) -> bool:
        """Change a stage's number of workers by ``by``; returns False if that would leave the stage's bounds."""
        if not self._worker_pools[stage].resize(by):
            return False
        self._hire(self._dispatcher.graph.stage(stage))
        return True

    def load(self, seconds: float) -> Workload:
        """The load of the stages that can be resized, since the last call of this method ``seconds`` ago."""
        dispatcher = self._dispatcher
        stages = [
            self._worker_pools[stage.name].load(
                dispatcher.counters.stages[stage.name], self._queues[stage.name].stats(), self._place(stage), seconds
            )
            for stage in dispatcher.graph.stages
            if stage.bounds is not None
        ]
        return Workload(
            anyio.current_time(), seconds, stages, dispatcher.services.open_calls.take_mean(), dispatcher.call_limit
        )

    def _place(self, stage: AnyStage) -> Place:
        graph = self._dispatcher.graph
        if stage.name == graph.repair:
            return "repair"
        return "first" if stage.name in graph.stage(graph.entry).to[:1] else "later"

    def _hire(self, stage: AnyStage) -> None:
        if self._tasks is None:
            raise EngineError("the executor was not started")
        worker_pool = self._worker_pools[stage.name]
        for _ in range(worker_pool.missing):
            worker = worker_pool.hire()
            self._tasks.start_soon(self._work, stage, worker, name=f"{stage.name}-{worker}")

    def _flush_first(self) -> None:
        """Hand the first gathering stage with a non-empty queue what there is. The result may fill the later ones."""
        for stage in self._dispatcher.graph.stages:
            if stage.gathers and self._queues[stage.name]:
                self._queues[stage.name].flush()
                return

    def _let_depart(self) -> None:
        """Hand gathering stages the items that wait for them, if their departure policies say so."""
        for stage, departure in self._departures:
            queue = self._queues[stage.name]
            if queue and self._dispatcher.leaves(stage, departure, len(queue)):
                queue.flush()

    def _only_gathering(self) -> bool:
        """Whether all live items wait at gathering stages, so that no more can arrive to fill a batch."""
        graph = self._dispatcher.graph
        return not self._dispatcher.items_in_work and all(
            not self._queues[stage.name] for stage in graph.stages if not stage.gathers
        )

    async def _work(self, stage: AnyStage, worker: int) -> None:
        queue, worker_pool = self._queues[stage.name], self._worker_pools[stage.name]
        while worker_pool.keeps(worker):
            if stage.gather_by is not None:
                queue.set_gather(self._dispatcher.batch_size(stage))
            taken = await worker_pool.wait(worker, queue.take)
            if taken is not None:
                if self._dispatcher.pause.items:
                    with self._dispatcher.in_work(len(taken)):  # they count as in work until the pause is over
                        await self._dispatcher.pause.wait_for_items()
                with worker_pool.busy:
                    ready = await self._check_staleness(stage, taken)
                    if ready:
                        await self._dispatcher.work(stage, ready, partial(self._send, stage.name))

    async def _check_staleness(self, stage: AnyStage, taken: Sequence[Item[object]]) -> list[Item[object]]:
        """Check items for staleness: send those that need repair to the repair stage, and return those to work on."""
        ready: list[Item[object]] = []
        for item in taken:
            looked_at = self._dispatcher.take(stage, item)
            if looked_at is item:
                ready.append(item)
            elif looked_at is not None and self._dispatcher.graph.repair is not None:
                await self._send(stage.name, self._dispatcher.graph.repair, looked_at)
        return ready

    async def _send(self, source: str, target: str, item: Item[object]) -> None:
        if self._dispatcher.graph.is_back_edge(source, target):
            self._queues[target].put_back(item)
        else:
            await self._queues[target].put(item)
