"""What the two ways to run a graph have in common: `flowevolve.engine.stream` and `flowevolve.engine.lockstep`.

Both run the same stage functions through the same dispatcher and differ only in the order in which they do so. Only the
stream asks the staleness policy: in lockstep of width one, nothing else changes the pool while a flow is under way, and
the published batch forms do not check for staleness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from anyio.abc import TaskGroup

from flowevolve.core.item import Item
from flowevolve.engine.queue import QueueStats


class Executor(Protocol):
    """Runs items through the graph. At most ``width`` flows are open at a time."""

    @property
    def width(self) -> int: ...

    def update_width(self) -> None:
        """Decide how many flows may be open. This is called before a flow is opened."""

    def start(self, tasks: TaskGroup) -> None:
        """Begin with nothing waiting, and start long-lived tasks in this group. After they were cancelled, this is
        called again with another group.
        """

    async def put(self, stage: str, item: Item[object]) -> None:
        """Accept an item for a stage, and wait while that stage's queue is full."""

    def put_back(self, stage: str, item: Item[object]) -> None:
        """Accept an item for a stage at once, however full that stage's queue is."""

    def put_together(self, stage: str, items: Sequence[Item[object]]) -> None:
        """Accept items for a stage again, as the one batch in which they were being worked on."""

    async def advance(self) -> None:
        """Continue the work, and return when a flow may have ended or the run was asked to stop."""

    def queue_stats(self, stage: str) -> QueueStats | None:
        """Statistics of a stage's queue, if it has one."""

    def workers(self, stage: str) -> int:
        """How many workers a stage should have now."""
