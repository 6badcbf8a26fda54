"""A (1+λ) reflective search: the best candidate gets λ children, and the best of them all is the next parent."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from pydantic import PositiveInt

import flowevolve as fe
from flowevolve.stages import Rollouts, committing, reflect


class Settings(fe.Settings):
    children: PositiveInt = 4
    examples: PositiveInt = 3


@fe.payload("reflective_search.Selected")
@dataclass(frozen=True)
class Selected:
    parent: fe.Candidate
    batch: tuple[str, ...]


@fe.payload("reflective_search.Child")
@dataclass(frozen=True)
class Child:
    candidate: fe.Candidate


class Best:
    candidate: fe.Candidate | None = None

    def apply(self, update: fe.Update) -> None:
        for candidate in update.added():
            if self.beaten_by(candidate):
                self.candidate = candidate

    def beaten_by(self, other: fe.Candidate) -> bool:
        return self.candidate is None or other.mean_score > self.candidate.mean_score


class OnePlusLambda(fe.Algorithm[Settings]):
    name = "reflective_search"
    config_type = Settings
    staleness = "full"

    def __init__(self, task: fe.Task, config: Settings, tuning: fe.Tuning) -> None:
        super().__init__(task, config, tuning)
        self.rollouts, self.archive = Rollouts(task), Best()
        self.train, self.val = ([row.id for row in split] for split in (task.data.train, task.data.val))
        if len(self.train) < config.examples:
            raise fe.InputError(f"algorithm.examples: there are only {len(self.train)} training examples; take fewer")
        self.archives = (self.archive,)

    def graph(self) -> fe.Graph:
        stages = (
            fe.Stage("select", self.select, to=("propose",)),
            fe.Stage("propose", self.propose, to=("evaluate",), workers=8),
            fe.Stage("evaluate", self.evaluate, to=("update",), workers=8),
            committing("update", self.update),
        )
        return fe.Graph(stages, entry="select")

    def estimate(self, trigger: str | None = None) -> fe.Cost:
        return fe.Cost(proposals=self.config.children)

    async def init(self, context: fe.UpdateContext) -> AsyncGenerator[fe.Emit]:
        yield fe.Emit(Child(context.propose(self.task.seed(), parents=[], operator="seed")), to="evaluate")

    async def select(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        parent = self.archive.candidate
        if parent is None:
            raise fe.Exhausted
        for _ in range(self.config.children):
            batch = tuple(context.random.sample(self.train, self.config.examples))
            yield fe.Emit(Selected(parent, batch), version=context.pool.version, derives=(parent.id,))

    async def propose(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        selected = item.expect(Selected)
        rollouts = await self.rollouts.run(selected.parent, selected.batch, "train", context)
        component = context.random.choice(list(selected.parent.artifact))
        text = await reflect(selected.parent, component, rollouts, context)
        context.begin(fe.Cost(proposals=1))
        new = selected.parent.artifact.replace(**{component: text})
        yield fe.Emit(Child(context.propose(new, parents=[selected.parent], operator="reflect", born=item.version)))

    async def evaluate(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        candidate = item.expect(Child).candidate
        rollouts = await self.rollouts.run(candidate, self.val, "val", context)
        yield fe.Emit(Child(candidate.scored({row.example_id: row.score.value for row in rollouts})))

    async def update(self, item: fe.Item[object], context: fe.UpdateContext) -> None:
        candidate = item.expect(Child).candidate
        if not self.archive.beaten_by(candidate):
            raise fe.Discard("not better than the best")
        context.commit([fe.Add(candidate)])

    def best(self) -> fe.Candidate | None:
        return self.archive.candidate
