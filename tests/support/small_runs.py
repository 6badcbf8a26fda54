"""Small graphs of plain functions, run by the engine on the virtual clock."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field

import anyio

from flowevolve._util import clock
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Budget
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import (
    NO_EMISSIONS,
    AnyStage,
    CommittingStage,
    Emit,
    Exhausted,
    Graph,
    Stage,
    StageFunction,
    Trigger,
)
from flowevolve.core.item import Item
from flowevolve.core.policies import FlowBound, StalenessPolicy
from flowevolve.core.pool import Add, Candidate, Update
from flowevolve.engine.contract import Mode
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler

Phase = Callable[[StageContext], AsyncGenerator[Emit]]


@dataclass(frozen=True)
class Carrier:
    candidate: Candidate


@dataclass
class Best:
    best: Candidate | None = None

    def apply(self, update: Update) -> None:
        for candidate in update.added():
            if self.best is None or candidate.mean_score > self.best.mean_score:
                self.best = candidate


async def nothing(context: StageContext) -> AsyncGenerator[Emit]:
    for emission in NO_EMISSIONS:
        yield emission


async def no_work(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    raise Exhausted
    yield Emit(None)  # type: ignore[unreachable]  # makes it a generator


async def consume(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    for emission in NO_EMISSIONS:
        yield emission


async def add(item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
    context.commit([Add(item.expect(Carrier).candidate)])
    for emission in NO_EMISSIONS:
        yield emission


def propose(context: StageContext, text: str = "text", parents: Sequence[Candidate] = ()) -> Candidate:
    return context.propose(Artifact({"text": text}), parents=parents, operator="small")


def once(run: StageFunction) -> StageFunction:
    """An entry stage that has work for one flow."""

    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.flow > 1:
            raise Exhausted
        async for emission in run(item, context):
            yield emission

    return enter


class Small(Algorithm):
    """A graph of functions: ``entry``, at which ``entries`` workers are, and ``update`` at its ends, and whatever is
    given between them.
    """

    name = "small"

    def __init__(
        self,
        entry: StageFunction,
        *between: Stage,
        update: StageFunction[UpdateContext] = add,
        init: Phase = nothing,
        finish: Phase = nothing,
        triggers: tuple[Trigger, ...] = (),
        repair: str | None = None,
        pools: Sequence[str] = ("main",),
        entries: int = 1,
    ) -> None:
        self._stages: tuple[AnyStage, ...] = (
            Stage("entry", entry, (*(stage.name for stage in between), "update"), workers=entries),
            *between,
            CommittingStage("update", update),
        )
        self._init, self._finish, self._triggers, self._repair = init, finish, triggers, repair
        self._archive = Best()
        self.machines: list[int] = []
        """How many rollouts the machines run at a time, if any are needed."""
        self.archives = (self._archive,)
        self.pools = pools

    @property
    def slots(self) -> int | None:
        return sum(self.machines) if self.machines else None

    def best(self) -> Candidate | None:
        return self._archive.best

    def graph(self) -> Graph:
        return Graph(self._stages, "entry", self._repair, self._triggers)

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        async for emission in self._init(context):
            yield emission

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        async for emission in self._finish(context):
            yield emission


@dataclass
class Ran:
    report: RunReport
    events: list[Event] = field(default_factory=list)

    def statuses(self) -> dict[str, str]:
        """What became of every candidate that was proposed."""
        names = [str(event.data["candidate"]) for event in self.events if event.kind == "candidate.proposed"]
        return {name: self.report.pool.status(name) for name in names}

    def count(self, kind: str) -> int:
        return sum(event.kind == kind for event in self.events)


def run_small(
    algorithm: Algorithm,
    *,
    budget: Budget | None = None,
    mode: Mode = "stream",
    width: int | FlowBound = 4,
    staleness: StalenessPolicy | None = None,
    meanwhile: Callable[[Engine], Coroutine[None, None, None]] | None = None,
    calls: int = 1,
) -> Ran:
    events: list[Event] = []

    async def go() -> RunReport:
        engine = Engine(
            algorithm,
            llm=LLMClient({}, Scheduler(calls), RetryPolicy(), 0, lambda record: None),
            budget=budget or Budget(seconds=1000),
            mode=mode,
            max_in_flight=width,
            staleness=staleness,
            sinks=[events.append],
        )
        if meanwhile is None:
            return await engine.run()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(meanwhile, engine)
            report = await engine.run()
            tasks.cancel_scope.cancel()
        return report

    return Ran(clock.run(go, clock="virtual"), events)


def five_plans(to: str) -> Phase:
    async def init(context: StageContext) -> AsyncGenerator[Emit]:
        for number in range(5):
            yield Emit(Carrier(propose(context, str(number))), to=to)

    return init
