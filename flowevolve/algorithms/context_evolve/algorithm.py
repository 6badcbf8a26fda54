"""ContextEvolve (Su et al., 2026) as a graph.

    select ─▶ navigate ─▶ sample ─▶ generate ─▶ evaluate ─▶ summarize ─▶ update
                 ▲           │          │
                 └─ renew ◀──┴──────────┘   (staleness policy reflective)

A program is committed together with its abstract, so that no program without one is ever selected.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import ClassVar

from flowevolve._util.errors import InputError
from flowevolve.algorithms.context_evolve.config import ContextEvolveConfig
from flowevolve.algorithms.context_evolve.evolve_buffer import EvolveBuffer
from flowevolve.algorithms.context_evolve.navigate import Navigate
from flowevolve.algorithms.context_evolve.payloads import Step
from flowevolve.algorithms.context_evolve.stages import (
    AGENT,
    CODE,
    Steps,
    renew,
    summarize,
    update,
)
from flowevolve.core.algorithm import SEE_LOG, Algorithm, Tuning, Workers, check_components
from flowevolve.core.assessment import Assessment
from flowevolve.core.budget import Cost
from flowevolve.core.context import PoolReader, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import AnyStage, Emit, Graph, Stage
from flowevolve.core.item import Item
from flowevolve.core.pool import SEED, Candidate
from flowevolve.core.task import Task
from flowevolve.programs.task import check_programs, seed_fails
from flowevolve.stages import Assess, Assessed, Rollouts, Written, committing

DEFAULT_WORKERS: Mapping[str, Workers] = {
    "navigate": Workers(16),
    "sample": Workers(16),
    "generate": Workers(16),
    "evaluate": Workers(16),
    "summarize": Workers(16),
}
"""Workers in streaming mode; select, update and renew have one each."""


class ContextEvolve(Algorithm[ContextEvolveConfig]):
    """Raises:
    InputError: if the task is not one of programs, or the tuning does not suit ContextEvolve.
    """

    name = "context_evolve"
    description = (
        "Programs so long that a prompt can show only a few: agents keep the history short.\n"
        "For a few hundred evaluations; it saves tokens if programs have 2,000 tokens or more."
    )
    config_type = ContextEvolveConfig
    roles: ClassVar = (CODE, AGENT)
    staleness = "full"

    def __init__(self, task: Task, config: ContextEvolveConfig | None = None, tuning: Tuning | None = None) -> None:
        task = check_programs(task, self.name)
        super().__init__(task, config or ContextEvolveConfig(), tuning or Tuning())
        self._task = task
        self._workers = self.tuning.workers_of(DEFAULT_WORKERS)
        self._writing = self.config.writing(task.problem)
        self._describes = self.config.summarizer and not self.config.raw_history
        self.buffer = EvolveBuffer(described=self._describes, failed_parents=self.config.failed_parents)
        self.archives = (self.buffer,)
        self._navigate = Navigate(self.buffer, task.problem.statement, self.config, AGENT)

    def best(self) -> Candidate | None:
        return self.buffer.best()

    def inject(self, candidate: Candidate) -> Emit:
        return Emit(Written(check_components(candidate, self._task.seed())), to="evaluate")

    def check_veto(self, candidate: Candidate) -> None:
        """Any candidate can be taken out."""

    def estimate(self, trigger: str | None = None) -> Cost:
        cases = len(self._task.data.val)
        return Cost(proposals=1, evaluations=1, rollouts=cases)

    def gap(self, item: Item[object], pool: PoolReader) -> int:
        """How many programs better than the item's parent were added since, unknown to its guidance and examples."""
        match item.payload:
            case Step(parent=parent):
                return self.buffer.better_since(item.version, parent.mean_score)
            case Written(candidate=candidate) | Assessed(candidate=candidate) if candidate.parents:
                return self.buffer.better_since(item.version, pool[candidate.parents[0]].mean_score)
            case _:
                return 0

    def graph(self) -> Graph:
        task, config = self._task, self.config
        agents = not config.raw_history
        navigates = agents and config.navigator
        first = "navigate" if navigates else "sample"
        after = "summarize" if self._describes else "update"
        steps = Steps(self.buffer, task.problem.statement, config, self._writing)
        sample = steps.sample if agents and config.sampler else steps.pick
        # What a step has chosen goes stale while it waits, so the queues before a program is written are short.
        stages: list[AnyStage] = [Stage("select", steps.select, (first,))]
        if navigates:
            stages.append(self._workers.stage("navigate", self._navigate, "sample", capacity=1, repair_to="navigate"))
        stages += [
            self._workers.stage("sample", sample, "generate", capacity=1, repair_to=first),
            self._workers.stage("generate", steps.generate, "evaluate", capacity=1, repair_to=first),
            self._workers.stage("evaluate", Assess(Rollouts(task), task), after),
        ]
        if self._describes:
            stages.append(self._workers.stage("summarize", summarize, "update"))
        stages += [committing("update", update), Stage("renew", renew, (first,))]
        return Graph(tuple(stages), entry="select", repair="renew")

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        yield self.inject(context.propose(self._task.seed(), parents=[], operator=SEED))

    async def fit(self, context: UpdateContext) -> None:
        """Check that the seed program was evaluated and works.

        Raises:
            InputError: if it was not, or does not.
        """
        seed = self.buffer.seed
        if context.stopping or self.best() is not None:
            return
        if seed is None:
            raise InputError(f"task {self._task.name!r}: the seed could not be evaluated; {SEE_LOG}")
        raise seed_fails(self._task, Assessment.of(seed).failure)

    def apply_event(self, event: Event) -> None:
        self._navigate.apply_event(event)
