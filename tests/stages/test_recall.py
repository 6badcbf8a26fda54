"""Recalling and distilling: what a run takes from other tasks and gives to them, once, interrupted or not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import flowevolve as fe
from flowevolve.agents.memory import Direction, Insight, Step
from flowevolve.context import UpdateContext
from flowevolve.item import Item, Ticket
from flowevolve.memory.entries import Entry
from flowevolve.memory.store import GlobalMemory
from flowevolve.pool import Candidate
from flowevolve.programs.prompts import Shown
from flowevolve.stage import NO_EMISSIONS, Emit, Exhausted, Graph, Stage
from flowevolve.stages.committing import committing
from flowevolve.stages.recall import Distill, Recall

LOOPS = Entry("other", "unroll loops", "where they are short\nprefer: loops")
LOOPS_AGAIN = Entry("third", "unroll loops", "where they are short prefer loops")
CALLS = Entry("other", "use fewer calls", "they are slow")
PROGRAM = Shown({"program.py": "x"}, 1.0)
STEPS = [Step(0.5, Insight(Direction("loops", "success"), "it is hot"))]


class Recalling(fe.Algorithm):
    """Recalls for every ticket, and distills at the end."""

    name = "recalling"
    roles = ("agent", "embedding")

    def __init__(self, memory: GlobalMemory | None, tickets: int = 2, steps: Sequence[Step] = STEPS) -> None:
        self.recalled: list[tuple[Entry, ...]] = []
        self.distilled: tuple[Entry, ...] | None = None
        self._recall = Recall("Find it.", lambda: memory)
        self._distill = Distill("this", "Find it.", lambda: memory)
        self._tickets = tickets
        self._steps = steps

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        update = Stage("update", committing(self._nothing), commits=True)
        return Graph((Stage("recall", self._look, ("update",)), update), entry="recall")

    async def _look(self, item: Item[object], context: fe.StageContext) -> AsyncGenerator[Emit]:
        if item.expect(Ticket).ordinal >= self._tickets:
            raise Exhausted
        self.recalled.append(await self._recall.recall(PROGRAM, "known", context))
        for emission in NO_EMISSIONS:
            yield emission

    async def _nothing(self, item: Item[object], context: UpdateContext) -> None:
        pass

    async def finish(self, context: fe.StageContext) -> AsyncGenerator[Emit]:
        self.distilled = await self._distill.distill(PROGRAM, self._steps, [], context)
        for emission in NO_EMISSIONS:
            yield emission
