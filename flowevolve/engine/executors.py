"""The two ways to run a graph: as a stream, and in lockstep.

Both run the same stage functions through the same runtime and differ only in when: the stream gives every stage a queue
and workers that never wait for each other; lockstep, the published synchronous form, runs all that waits at one stage
side by side, waits for the slowest, and goes on to the next stage. Only the stream asks the staleness policy: in
lockstep nothing overtakes a flow of width one, and the published batch forms don't look.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from flowevolve._util.errors import EngineError
from flowevolve.core.graph import AnyStage
from flowevolve.core.item import Item
from flowevolve.core.policies import Place, Workload
from flowevolve.engine.dispatcher import Dispatcher
from flowevolve.engine.queue import ItemQueue, QueueClosedError, QueueStats
from flowevolve.engine.workers import WorkerPool

QueuedItem = tuple[str, Item[object]]


class Executor(Protocol):
    """Runs items through the graph. ``width`` bounds the open flows."""

    width: int

    def start(self, tasks: TaskGroup) -> None:
        """Begin with nothing waiting; long-lived tasks go into this group. If those were cancelled, begin anew."""
        ...

    async def put(self, stage: str, item: Item[object]) -> None:
        """Accept an item for a stage."""
        ...

    def restore(self, stage: str, items: Sequence[Item[object]], *, together: bool) -> None:
        """Have items wait for a stage again; ``together``: as the one batch that was being worked on."""
        ...

    def set_workers(self, stage: str, workers: int) -> None:
        """Go towards so many workers at a stage, as far as its bounds allow."""
        ...

    async def advance(self) -> None:
        """Make progress: return when a flow may have closed or the run was asked to stop."""
        ...

    def close(self) -> None:
        """End the tasks once they are idle."""
        ...

    def queue_stats(self, stage: str) -> QueueStats | None:
        """Statistics of a stage's queue, if it has one."""
        ...

    def workers(self, stage: str) -> int:
        """How many workers a stage has now."""
        ...


class Stream:
    """Every stage a pool of workers over a bounded queue. The pools can be resized while they work."""

    def __init__(self, dispatcher: Dispatcher, width: int) -> None:
        self.width = width
        self._dispatcher = dispatcher
        self._queues = {
            stage.name: ItemQueue[Item[object]](stage.capacity, anyio.current_time, stage.gather, stage.gather_key)
            for stage in dispatcher.graph.stages
        }
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

    def restore(self, stage: str, items: Sequence[Item[object]], *, together: bool) -> None:
        if together:
            self._queues[stage].put_together(items)
            return
        for item in items:
            self._queues[stage].put_back(item)

    def set_workers(self, stage: str, workers: int) -> None:
        while (missing := workers - self.workers(stage)) and self.resize(stage, 1 if missing > 0 else -1):
            pass

    async def advance(self) -> None:
        if self._only_gathering():
            self._flush_first()
        await self._dispatcher.changed.wait()

    def close(self) -> None:
        for queue in self._queues.values():
            queue.close()

    def queue_stats(self, stage: str) -> QueueStats | None:
        return self._queues[stage].stats()

    def workers(self, stage: str) -> int:
        return self._worker_pools[stage].wanted

    def resize(self, stage: str, by: int) -> bool:
        """Give a stage so many workers more or, negative, fewer; False if that would leave its bounds."""
        if not self._worker_pools[stage].resize(by):
            return False
        self._hire(self._dispatcher.graph.stage(stage))
        return True

    def load(self, seconds: float) -> Workload:
        """What happened at the stages that can be resized since this was last asked, ``seconds`` ago."""
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
        """Let the first gathering stage that holds something have it: what comes of that may fill the later ones."""
        for stage in self._dispatcher.graph.stages:
            if stage.gathers and self._queues[stage.name]:
                self._queues[stage.name].flush()
                return

    def _only_gathering(self) -> bool:
        """Whether all that is left to do waits for more items to be gathered with, which can't come."""
        graph = self._dispatcher.graph
        return not self._dispatcher.items_in_work and all(
            not self._queues[stage.name] for stage in graph.stages if not stage.gathers
        )

    async def _work(self, stage: AnyStage, worker: int) -> None:
        queue, worker_pool = self._queues[stage.name], self._worker_pools[stage.name]
        while worker_pool.keeps(worker):
            if stage.gather_by is not None:
                queue.set_gather(self._dispatcher.batch_size(stage))
            try:
                taken = await worker_pool.wait(worker, queue.take)
            except QueueClosedError:
                return
            if taken is not None:
                if self._dispatcher.pause.items:
                    await self._rest(len(taken))
                with worker_pool.working():
                    await self._work_on(stage, taken, worker)

    async def _rest(self, items: int) -> None:
        """Wait, with so many items in hand, until they may be worked on."""
        with self._dispatcher.in_work(items):
            await self._dispatcher.pause.wait_for_items()

    async def _work_on(self, stage: AnyStage, taken: Sequence[Item[object]], worker: int) -> None:
        ready = await self._look(stage, taken)
        if ready:
            await self._dispatcher.work(stage, ready, worker, partial(self._send, stage.name))

    async def _look(self, stage: AnyStage, taken: Sequence[Item[object]]) -> list[Item[object]]:
        """The items still worth working on here; those that need repair are sent there."""
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


class Lockstep:
    """One stage after the other, with a barrier after each. With ``width`` 1: the published synchronous loop."""

    def __init__(self, dispatcher: Dispatcher, width: int = 1) -> None:
        self.width = width
        self._dispatcher = dispatcher
        self._waiting: dict[str, list[Item[object]]] = {stage.name: [] for stage in dispatcher.graph.stages}
        self._together: dict[str, list[list[Item[object]]]] = {stage.name: [] for stage in dispatcher.graph.stages}

    def start(self, tasks: TaskGroup) -> None:
        for stage in self._waiting:
            self._waiting[stage].clear()
            self._together[stage].clear()

    async def put(self, stage: str, item: Item[object]) -> None:
        self._waiting[stage].append(item)

    def restore(self, stage: str, items: Sequence[Item[object]], *, together: bool) -> None:
        if together:
            self._together[stage].append(list(items))
        else:
            self._waiting[stage].extend(items)

    def set_width(self, width: int) -> None:
        """Let so many flows be open from now on."""
        self.width = width

    def set_workers(self, stage: str, workers: int) -> None:
        pass

    async def advance(self) -> None:
        """Run everything that waits, stage by stage in the order of the graph, until nothing does."""
        if not any(map(self._holds, self._waiting)):
            await self._dispatcher.changed.wait()
        while True:
            await self._dispatcher.pause.wait_for_items()
            stage = next((stage for stage in self._dispatcher.graph.stages if self._holds(stage.name)), None)
            if stage is None:
                return
            items, together = self._waiting[stage.name], self._together[stage.name]
            self._waiting[stage.name], self._together[stage.name] = [], []
            await self._run_stage(stage, items, together)

    def _holds(self, stage: str) -> bool:
        return bool(self._waiting[stage] or self._together[stage])

    def close(self) -> None:
        pass

    def queue_stats(self, stage: str) -> QueueStats | None:
        return None

    def workers(self, stage: str) -> int:
        return self._dispatcher.graph.stage(stage).workers

    def _batches(self, stage: AnyStage, items: Sequence[Item[object]]) -> list[Sequence[Item[object]]]:
        """What is handed over together."""
        alike: dict[Hashable, list[Item[object]]] = {}
        for item in items:
            alike.setdefault(None if stage.gather_key is None else stage.gather_key(item), []).append(item)
        size = self._dispatcher.batch_size(stage)
        return [group[start : start + size] for group in alike.values() for start in range(0, len(group), size)]

    async def _run_stage(
        self, stage: AnyStage, items: Sequence[Item[object]], together: Sequence[Sequence[Item[object]]]
    ) -> None:
        batches = [*together, *self._batches(stage, items)]
        emitted: list[list[QueuedItem]] = [[] for _ in batches]

        async def run(index: int) -> None:
            async def keep(target: str, item: Item[object]) -> None:
                emitted[index].append((target, item))

            for item in batches[index]:
                self._dispatcher.mark_taken(stage, item)  # in one step with what says that they were gathered
            await self._dispatcher.work(stage, batches[index], index, keep)

        if stage.commits or stage.exclusive:
            for index in range(len(batches)):
                await run(index)
        else:
            async with anyio.create_task_group() as tasks:
                for index in range(len(batches)):
                    tasks.start_soon(run, index)
        for target, item in (sent for batch in emitted for sent in batch):
            self._waiting[target].append(item)
