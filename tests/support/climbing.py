"""An algorithm that climbs, and runs of it in which somebody acts at given times."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any

import anyio

import flowevolve as fe
from flowevolve._util.errors import InputError
from flowevolve.core.acts import Act
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Discard, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Item, Ticket
from flowevolve.core.pool import Add, Candidate, Update, Vetoed
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from tests.support.interruption import Fact, events_of, evolve


class Standing:
    """An archive of all candidates but the vetoed ones."""

    def __init__(self) -> None:
        self._all: list[Candidate] = []
        self._vetoed: set[str] = set()

    def apply(self, update: Update) -> None:
        self._all += update.added()
        for change in update.changes:
            if isinstance(change, Vetoed):
                (self._vetoed.add if change.stands else self._vetoed.discard)(change.candidate_id)

    def best(self) -> Candidate | None:
        standing = [each for each in self._all if each.id not in self._vetoed]
        return max(standing, key=lambda each: each.mean_score, default=None)


class Climbing(fe.Algorithm):
    """Each ticket makes a child of the best candidate in 2 s; it is a point better. Every third is turned down by a stage.

    What stages knew of comments when they worked on a ticket is in ``known``.
    """

    name = "climbing"

    def __init__(self, tickets: int = 12, *, steerable: bool = True) -> None:
        self._standing = Standing()
        self.archives = (self._standing,)
        self._tickets = tickets
        self._steerable = steerable
        self.known: dict[int, list[str]] = {}

    def best(self) -> Candidate | None:
        return self._standing.best()

    def inject(self, candidate: Candidate) -> Emit:
        return Emit(candidate, to="judge") if self._steerable else super().inject(candidate)

    def check_veto(self, candidate: Candidate) -> None:
        if not self._steerable:
            super().check_veto(candidate)

    def graph(self) -> Graph:
        return Graph(
            (
                Stage("make", self._make, ("judge",), workers=2),
                CommittingStage("judge", self._judge),
            ),
            entry="make",
        )

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        yield Emit(context.propose(fe.Artifact({"a": "seed"}), parents=[], operator="seed"), to="judge")

    async def _make(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        ordinal = item.expect(Ticket).ordinal
        if ordinal >= self._tickets:
            raise Exhausted
        parent = self.best()
        assert parent is not None
        await anyio.sleep(1)
        context.spend(fe.Cost(proposals=1))
        self.known[ordinal] = [each.text for each in context.comments if each.candidate == "c0"]
        child = context.propose(fe.Artifact({"a": f"{parent.artifact['a']} {ordinal}"}), parents=[parent], operator="w")
        await anyio.sleep(1)
        if ordinal % 3 == 2:
            raise Discard("not better")
        yield Emit(child)

    async def _judge(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        candidate = item.expect(Candidate)
        context.commit([Add(candidate.scored({"x": float(len(candidate.artifact["a"]))}))])
        for emission in NO_EMISSIONS:
            yield emission


Plan = list[tuple[float, Act]]


Acting = Callable[[Engine], Coroutine[Any, Any, None]]


def at(*plan: tuple[float, Act]) -> Acting:
    """Does acts at these seconds; what is refused is left."""

    async def act(engine: Engine) -> None:
        passed = 0.0
        for seconds, each in plan:
            await anyio.sleep(seconds - passed)
            passed = seconds
            try:
                await engine.act(each, "ada")
            except InputError:
                continue

    return act


def climb(*plan: tuple[float, Act], algorithm: Climbing | None = None, **options: Any) -> tuple[RunReport, list[Fact]]:
    return evolve(algorithm or Climbing(), beside=at(*plan), **options)


def steered(facts: Sequence[Fact]) -> list[tuple[object, object, object]]:
    return [(event.data["by"], event.data["act"], event.data["refused"]) for event in events_of(facts, "run.steered")]
