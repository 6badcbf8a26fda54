"""Controlled Self-Evolution (Hu et al., arXiv 2601.07348) as a graph.

    select ─▶ recall ─▶ diagnose ─▶ write ─▶ evaluate ─▶ reflect ─▶ update
                                    ▲   │                           ▲   │
                                    renew (stale)                  compress (memory too long)

Programs that are written to plans go straight to write, or to recall if there is a global memory. Without a global
memory there is no stage recall, without evolution no diagnose, and without any memory neither reflect nor compress. The
published form is lockstep one flow wide: one child a step, written with what the step before has taught.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import ClassVar, Self

from flowevolve._util.errors import InputError
from flowevolve.algorithms.cse.config import CSEConfig
from flowevolve.algorithms.cse.memory import MEMORY, Memory
from flowevolve.algorithms.cse.payloads import Brief, Planned
from flowevolve.algorithms.cse.recall import Distill, Recall
from flowevolve.algorithms.cse.remember import AGENT, Compress, Compressed, Reflect, Reflected, learn, shorten
from flowevolve.algorithms.cse.select import Population, RecallFor, Renew, Reward, Select
from flowevolve.algorithms.cse.write import CODE, Diagnose, Write
from flowevolve.core.algorithm import SEE_LOG, Algorithm, Tuning, Workers, check_components
from flowevolve.core.budget import Cost
from flowevolve.core.context import PoolReader, StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS, AnyStage, CommittingStage, Emit, Graph, Stage
from flowevolve.core.item import Item
from flowevolve.core.pool import DEFAULT_POOL, SEED, Add, Candidate
from flowevolve.core.task import Task
from flowevolve.experience.store import GlobalMemory
from flowevolve.programs.task import check_programs
from flowevolve.prompts.plans import plan_prompt, read_plans
from flowevolve.stages import Assess, Assessed, Rollouts, Written, as_shown, try_asking

DEFAULT_WORKERS: Mapping[str, Workers] = {
    "recall": Workers(8),
    "diagnose": Workers(16),
    "write": Workers(16),
    "evaluate": Workers(8),
    "reflect": Workers(16),
}
"""Workers in streaming mode; all other stages have one each."""


@dataclass(frozen=True)
class Commit:
    """Commits programs together with what they have taught. A program that failed enters as ``rejected``."""

    memory: Memory

    async def __call__(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        if isinstance(item.payload, Compressed):
            context.commit([shorten(item.payload, self.memory)])
            return
        for emission in self._enter(item, context):
            yield emission

    def _enter(self, item: Item[object], context: UpdateContext) -> Iterator[Emit]:
        payload = item.payload
        learned = payload.learned if isinstance(payload, Reflected) else None
        assessed = payload if isinstance(payload, Reflected) else item.expect(Assessed)
        learning = learn(learned, self.memory, context)
        added = Add(assessed.candidate, "confirmed" if assessed.failure is None else "rejected")
        context.commit([added, *learning.changes])
        yield from learning.emissions


class CSE(Algorithm[CSEConfig]):
    """A context manager: a run takes place in its block, with the global memory open, if there is one.

    Raises:
        InputError: if the task is not one of programs, or the tuning does not suit CSE.
    """

    name = "cse"
    description = (
        "Programs of several parts that have to be correct and fast, improved one part at a time.\n"
        "For about thirty evaluations, each with five to eight calls of a strong model."
    )
    config_type = CSEConfig
    roles: ClassVar[Sequence[str]] = (CODE, AGENT, "embedding")
    staleness = "reflective"
    pools = (DEFAULT_POOL, MEMORY)

    def __init__(self, task: Task, config: CSEConfig | None = None, tuning: Tuning | None = None) -> None:
        task = check_programs(task, self.name)
        super().__init__(task, config or CSEConfig(), tuning or Tuning())
        self._task = task
        self._statement = task.problem.statement
        self._workers = self.tuning.workers_of(DEFAULT_WORKERS)
        self._writing = self.config.writing(task.problem)
        self._reward = Reward(task.worst, self.config.epsilon)
        self.population = Population()
        # A memory that no prompt shows need not be short: the steps to distil are kept apart from its entries.
        self.memory = Memory(limit_tokens=self.config.compress_tokens if self.config.local_memory else sys.maxsize)
        self.archives = (self.population, self.memory)
        self._global: GlobalMemory | None = None
        self._opened = AsyncExitStack()
        self._distill = Distill(task.name, self._statement, lambda: self._global)

    async def __aenter__(self) -> Self:
        """Raises:
        InputError: if the global memory can't be opened.
        """
        self._global = await self._opened.enter_async_context(self.config.memory.open())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._global = None
        await self._opened.aclose()

    def best(self) -> Candidate | None:
        return self.population.best()

    def inject(self, candidate: Candidate) -> Emit:
        return Emit(Written(check_components(candidate, self._task.seed())), to="evaluate")

    def check_veto(self, candidate: Candidate) -> None:
        """Any candidate can be taken out."""

    def estimate(self, trigger: str | None = None) -> Cost:
        return Cost(proposals=1, evaluations=1, rollouts=len(self._task.problem.cases))

    def gap(self, item: Item[object], pool: PoolReader) -> int:
        """For a child that is not written yet: how many entries of the memory it does not know. A written program has
        missed nothing, because its value does not depend on what is known, and its parents do not change.
        """
        if not isinstance(item.payload, Brief) or not self.config.local_memory:
            return 0
        return len(self.memory.changed_since(item.version))

    def graph(self) -> Graph:
        return Graph(tuple(self._stages()), entry="select", repair="renew")

    def _stages(self) -> Iterator[AnyStage]:
        config, statement = self.config, self._statement
        select = Select(self.population, self.memory, self._reward, config)
        before = [
            *(["recall"] if config.memory.location is not None else []),
            *(["diagnose"] if config.evolution else []),
            "write",
        ]
        # What a child is written from is chosen when its flow begins. So queues are short: tickets wait before that.
        yield Stage("select", select, (before[0],))
        if "recall" in before:
            recall = Recall(statement, lambda: self._global, queries=config.queries, top=config.recalled)
            yield self._workers.stage("recall", RecallFor(recall), *before[1:], capacity=1)
        if "diagnose" in before:
            yield self._workers.stage("diagnose", Diagnose(statement), "write", capacity=1)
        yield Stage("renew", Renew(self.memory), ("write",))
        yield self._workers.stage("write", Write(statement, self._writing), "evaluate", repair_to="write", capacity=1)
        evaluate = Assess(Rollouts(self._task), self._task)
        yield self._workers.stage("evaluate", evaluate, "reflect" if config.learns else "update")
        if not config.learns:
            yield CommittingStage("update", Commit(self.memory))
            return
        reflect = Reflect(statement, change=self._change, memory=self.memory if config.local_memory else None)
        yield self._workers.stage("reflect", reflect, "update")
        yield Stage("compress", Compress(self.memory), ("update",))
        yield CommittingStage("update", Commit(self.memory), ("compress",))

    def _change(self, parent: Candidate, child: Assessed) -> float:
        return self._reward.of(child.candidate) - self._reward.of(parent)

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        """Emit the task's own seed, and programs to be written to plans. One call makes all the plans."""
        seed = context.propose(self._task.seed(), parents=[], operator=SEED)
        yield self.inject(seed)
        for plan in await self._plans(context):
            yield Emit(Planned(plan, seed), to="write" if self.config.memory.location is None else "recall")

    async def _plans(self, context: StageContext) -> Sequence[str]:
        """The plans; empty ones if planning is off, or the reply can't be read."""
        count = self.config.plans
        if not self.config.planning:
            return [""] * count
        prompt = plan_prompt(context.templates, self._statement, self._task.seed(), count)
        read = partial(read_plans, count=count)
        return await try_asking(context, CODE, prompt, read, agent="plan") or [""] * count

    async def fit(self, context: UpdateContext) -> None:
        """Only checks that there is a program to begin with."""
        if self.best() is None and not context.stopping:
            failed = self.population.last_failure
            why = SEE_LOG if failed is None else f"the last failed: {self._task.failure_said(failed)}"
            raise InputError(f"task {self._task.name!r}: neither the seed nor a program written to a plan works; {why}")

    def apply_event(self, event: Event) -> None:
        self._distill.apply_event(event)

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        """Add to the global memory what the steps that changed the reward most can teach others."""
        best = self.best()
        if best is not None:
            most = self.config.distilled_steps
            await self._distill.distill(
                as_shown(best), self.memory.improving[:most], self.memory.degrading[:most], context
            )
        for emission in NO_EMISSIONS:
            yield emission
