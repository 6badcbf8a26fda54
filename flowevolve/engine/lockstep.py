"""Lockstep, the published synchronous form.

All items that wait at a stage are worked on concurrently; when the slowest has ended, the next stage begins.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import anyio
from anyio.abc import TaskGroup

from flowevolve.core.event_kinds import StepEnded, WidthChanged
from flowevolve.core.graph import AnyStage
from flowevolve.core.item import Item
from flowevolve.core.policies import BatchSize
from flowevolve.engine.dispatcher import Dispatcher
from flowevolve.engine.queue import QueueStats

QueuedItem = tuple[str, Item[object]]


class Lockstep:
    """Runs one stage after the other, with a barrier after each. With ``width`` 1 this is the published loop.

    If the graph has a policy for the width, it is asked between steps, when no flow is open.
    """

    def __init__(self, dispatcher: Dispatcher, width: int = 1) -> None:
        self.width = width
        self._dispatcher = dispatcher
        self._waiting: dict[str, list[Item[object]]] = {stage.name: [] for stage in dispatcher.graph.stages}
        self._together: dict[str, list[list[Item[object]]]] = {stage.name: [] for stage in dispatcher.graph.stages}
        self._opened: int | None = None
        """How many flows had been opened when the step began; None before the first."""
        self._began = 0.0

    def start(self, tasks: TaskGroup) -> None:
        for stage in self._waiting:
            self._waiting[stage].clear()
            self._together[stage].clear()

    async def put(self, stage: str, item: Item[object]) -> None:
        self._waiting[stage].append(item)

    def put_back(self, stage: str, item: Item[object]) -> None:
        self._waiting[stage].append(item)

    def put_together(self, stage: str, items: Sequence[Item[object]]) -> None:
        self._together[stage].append(list(items))

    def update_width(self) -> None:
        """Set the width if a step has ended and the graph has a policy."""
        dispatcher, policy = self._dispatcher, self._dispatcher.graph.step_width
        if policy is None:
            return
        if dispatcher.flows:
            if self._opened is None:  # resumed in the middle of a step, which keeps its width
                self._set_width(policy)
            return
        flows = 0 if self._opened is None else dispatcher.flows.opened - self._opened
        if flows:
            dispatcher.log(StepEnded(flows, dispatcher.elapsed() - self._began))
        if flows or self._opened is None:
            self._set_width(policy)
        self._opened, self._began = dispatcher.flows.opened, dispatcher.elapsed()

    def _set_width(self, policy: BatchSize) -> None:
        width = max(1, policy.next(self._dispatcher.counters.steps))
        if width != self.width:
            self._dispatcher.log(WidthChanged(width, self.width))
            self.width = width

    async def advance(self) -> None:
        """Run everything that waits, stage by stage in the order of the graph, until nothing waits."""
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

    def queue_stats(self, stage: str) -> QueueStats | None:
        return None

    def workers(self, stage: str) -> int:
        return self._dispatcher.graph.stage(stage).workers

    def _batches(self, stage: AnyStage, items: Sequence[Item[object]]) -> list[Sequence[Item[object]]]:
        """Divide the items into the batches that the stage is to get."""
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
                self._dispatcher.mark_taken(stage, item)  # no await may come before the event that they were gathered
            await self._dispatcher.work(stage, batches[index], keep)

        if stage.commits or stage.exclusive:
            for index in range(len(batches)):
                await run(index)
        else:
            async with anyio.create_task_group() as tasks:
                for index in range(len(batches)):
                    tasks.start_soon(run, index)
        for target, item in (sent for batch in emitted for sent in batch):
            self._waiting[target].append(item)
