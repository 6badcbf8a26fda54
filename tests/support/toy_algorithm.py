"""An algorithm that follows given plans, and runs of it without a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

import anyio
from hypothesis import strategies as st

from flowevolve.core.algorithm import Algorithm
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import (
    NO_EMISSIONS,
    AnyStage,
    CommittingStage,
    Discard,
    Emit,
    Exhausted,
    Graph,
    Stage,
    StageFunction,
    Trigger,
)
from flowevolve.core.item import Item
from flowevolve.core.pool import Add, Candidate, Update
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler


@dataclass(frozen=True)
class Plan:
    """How one stage of a toy graph behaves; everything else is drawn from the item's own generator."""

    seconds: float = 1.0
    fan_out: int = 1
    discard: float = 0.0
    workers: int = 1
    capacity: int = 2
    gather: int = 1


@dataclass
class BestArchive:
    best: Candidate | None = None
    log: list[int] = field(default_factory=list)

    def apply(self, update: Update) -> None:
        self.log.append(update.version)
        for candidate in update.added():
            if self.best is None or candidate.mean_score > self.best.mean_score:
                self.best = candidate


class Toy(Algorithm):
    """A chain of stages that take time, branch and discard, then an update that adds a candidate with a random score."""

    name = "toy"

    def __init__(
        self, plans: Sequence[Plan], *, triggers: tuple[Trigger, ...] = (), most: int | None = None, cost: int = 1
    ) -> None:
        self._plans = plans
        self._triggers = triggers
        self._most = most
        self._cost = cost
        self.archive = BestArchive()
        self.archives = (self.archive,)
        self.triggered: list[str] = []

    def best(self) -> Candidate | None:
        return self.archive.best

    def estimate(self, trigger: str | None = None) -> Cost:
        return Cost(rollouts=self._cost)

    def graph(self) -> Graph:
        names = ["entry", *(f"s{n}" for n in range(len(self._plans))), "update"]
        stages: list[AnyStage] = [Stage("entry", self._enter, (names[1],))]
        for number, plan in enumerate(self._plans):
            stages.append(
                Stage(
                    names[number + 1], self._step(plan), (names[number + 2],), plan.workers, plan.capacity, plan.gather
                )
            )
        stages.append(CommittingStage("update", self._update))
        stages.append(Stage("extra", self._extra))
        return Graph(tuple(stages), entry="entry", triggers=self._triggers)

    async def _enter(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if self._most is not None and item.flow > self._most:
            raise Exhausted
        yield Emit(item.flow, version=context.pool.version)

    def _step(self, plan: Plan) -> StageFunction:
        async def step(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
            context.spend(Cost(rollouts=self._cost))
            await anyio.sleep(plan.seconds * context.random.random())
            if context.random.random() < plan.discard:
                raise Discard("unlucky")
            for number in range(plan.fan_out):
                yield Emit(number)

        return step

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        candidate = context.propose(Artifact({"text": item.id}), parents=[], operator="toy")
        context.commit([Add(candidate.scored({"x": context.random.random()}))])
        for emission in NO_EMISSIONS:
            yield emission

    async def _extra(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        self.triggered.append(item.id)
        for emission in NO_EMISSIONS:
            yield emission


def no_llm() -> LLMClient:
    return LLMClient({}, Scheduler(1), RetryPolicy(), 0, lambda record: None)


plans = st.lists(
    st.builds(
        Plan,
        seconds=st.sampled_from([0.0, 1.0, 10.0]),
        fan_out=st.integers(0, 3),
        discard=st.sampled_from([0.0, 0.3]),
        workers=st.integers(1, 4),
        capacity=st.integers(1, 3),
        gather=st.integers(1, 3),
    ),
    min_size=1,
    max_size=4,
)


class Buggy(Toy):
    async def _enter(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        raise ZeroDivisionError("no")
        yield Emit(None)  # type: ignore[unreachable]  # makes it a generator


BUG = r"^stage 'entry' of algorithm 'toy', item 1: ZeroDivisionError: no \(toy_algorithm\.py, line \d+\)$"
