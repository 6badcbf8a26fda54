"""An algorithm whose texts grow, for tests of what a caller does to a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio

import flowevolve as fe
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Item, Ticket
from flowevolve.core.pool import Add, Candidate


class Growing(fe.Algorithm):
    """A candidate a ticket, made in 2 s, evaluated in 3 s by two workers. init takes 4 s."""

    name = "growing"

    def __init__(self, tickets: int = 6, *, welcoming: bool = True) -> None:
        self.archives = ()
        self._tickets = tickets
        self._welcoming = welcoming

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        return Graph(
            (
                Stage("make", self._make, ("evaluate",), workers=2),
                Stage("evaluate", self._evaluate, ("update",), workers=2, capacity=1),
                CommittingStage("update", self._update),
            ),
            entry="make",
        )

    def inject(self, candidate: Candidate) -> Emit:
        return Emit(candidate, to="evaluate") if self._welcoming else super().inject(candidate)

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(1)
        yield Emit(context.propose(fe.Artifact({"a": "seed"}), parents=[], operator="seed"), to="evaluate")

    async def _make(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.expect(Ticket).ordinal >= self._tickets:
            raise Exhausted
        await anyio.sleep(2)
        context.spend(fe.Cost(proposals=1))
        yield Emit(context.propose(fe.Artifact({"a": item.id}), parents=[], operator="new"))

    async def _evaluate(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(3)
        yield Emit(item.payload)

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        context.commit([Add(item.expect(Candidate).scored({"x": 1.0}))])
        for emission in NO_EMISSIONS:
            yield emission
