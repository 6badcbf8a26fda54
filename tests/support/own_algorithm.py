"""An algorithm as somebody else may write it, named in a configuration by ``tests.support.own_algorithm:Climb``.

The best candidate gets a child by reflection, again and again. Tests derive from it what has a mistake.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from pydantic import PositiveInt

import flowevolve as fe
from flowevolve.stages import Rollouts, committing, reflect
from tests.support.small_runs import Best


class Settings(fe.Settings):
    children: PositiveInt = 1


@fe.payload("own_algorithm.Chosen")
@dataclass(frozen=True)
class Chosen:
    parent: fe.Candidate


@fe.payload("own_algorithm.Child")
@dataclass(frozen=True)
class Child:
    candidate: fe.Candidate


class Climb(fe.Algorithm[Settings]):
    """Climbs."""

    name = "climb"
    config_type = Settings
    staleness = "full"

    def __init__(self, task: fe.Task, config: Settings, tuning: fe.Tuning) -> None:
        super().__init__(task, config, tuning)
        self.rollouts, self.archive = Rollouts(task), Best()
        self.archives = (self.archive,)

    def graph(self) -> fe.Graph:
        stages = (
            fe.Stage("select", self.select, to=("propose",)),
            fe.Stage("propose", self.propose, to=("evaluate",), workers=8),
            fe.Stage("evaluate", self.evaluate, to=("update",), workers=8),
            committing("update", self.update),
        )
        return fe.Graph(stages, entry="select")

    async def init(self, context: fe.UpdateContext) -> AsyncGenerator[fe.Emit]:
        yield fe.Emit(Child(context.propose(self.task.seed(), parents=[], operator="seed")), to="evaluate")

    async def select(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        parent = self.archive.best
        if parent is None:
            raise fe.Exhausted
        for _ in range(self.config.children):
            yield fe.Emit(Chosen(parent), version=context.pool.version, derives=(parent.id,))

    async def propose(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        parent = item.expect(Chosen).parent
        rollouts = await self.rollouts.run(parent, [self.task.data.train[0].id], "train", context)
        component = context.random.choice(list(parent.artifact))
        text = await reflect(parent, component, rollouts, context)
        context.spend(fe.Cost(proposals=1))
        new = parent.artifact.replace(**{component: text})
        yield fe.Emit(Child(context.propose(new, parents=[parent], operator="reflect", born=item.version)))

    async def evaluate(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        candidate = item.expect(Child).candidate
        rollouts = await self.rollouts.run(candidate, [row.id for row in self.task.data.val], "val", context)
        yield fe.Emit(Child(candidate.scored({row.example_id: row.score.value for row in rollouts})))

    async def update(self, item: fe.Item[object], context: fe.UpdateContext) -> None:
        context.commit([fe.Add(item.expect(Child).candidate)])

    def best(self) -> fe.Candidate | None:
        return self.archive.best

    def inject(self, candidate: fe.Candidate) -> fe.Emit:
        return fe.Emit(Child(candidate), to="evaluate")
