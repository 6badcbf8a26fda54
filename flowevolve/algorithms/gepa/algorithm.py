"""GEPA, reflective prompt evolution (Agrawal et al., arXiv 2507.19457), as a graph.

    select ─▶ generate ─▶ propose ─▶ screen ─▶ evaluate ─▶ update
       └────────── merge ──────────────▲
                  repair ──────────────┘   (stale proposals)

A repaired proposal is screened before it is evaluated, wherever it went stale: its patch has not been run on anything.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from pydantic import BaseModel

from flowevolve.algorithm import Algorithm
from flowevolve.algorithms.gepa.config import GEPAConfig
from flowevolve.algorithms.gepa.select import MergeSchedule, Select
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.budget import Cost
from flowevolve.context import UpdateContext
from flowevolve.errors import InputError
from flowevolve.policies.acceptance import Acceptance, ImprovementOrEqual, StrictImprovement
from flowevolve.policies.selection import (
    AllComponents,
    ComponentSelection,
    CurrentBest,
    EpsilonGreedy,
    Pareto,
    RoundRobin,
    Selection,
    TopKPareto,
)
from flowevolve.pool import Candidate
from flowevolve.stage import Emit, Graph, Stage
from flowevolve.stages.evaluate import Evaluate
from flowevolve.stages.generate import Generate
from flowevolve.stages.payloads import Proposed
from flowevolve.stages.propose import Propose
from flowevolve.stages.repair import Repair
from flowevolve.stages.rollouts import Rollouts
from flowevolve.stages.screen import Screen
from flowevolve.stages.update import Update
from flowevolve.tasks.base import Task

DEFAULT_WORKERS: Mapping[str, int] = {"generate": 8, "propose": 8, "screen": 8, "evaluate": 8, "repair": 4}
"""Workers of the streaming mode; one each for select and update. Wide enough that the bound on open flows decides."""


class GEPA(Algorithm):
    """``workers`` sets the number of workers of some stages by name.

    Raises:
        InputError: if the task has no training or validation examples, or ``workers`` names no stage of GEPA.
    """

    name = "gepa"
    config_type = GEPAConfig

    def __init__(self, task: Task, config: GEPAConfig | None = None, workers: Mapping[str, int] | None = None) -> None:
        self.config = config or GEPAConfig()
        if not task.data.train or not task.data.val:
            raise InputError(f"task {task.name!r}: GEPA needs training and validation examples")
        unknown = set(workers or {}) - set(DEFAULT_WORKERS)
        if unknown:
            raise InputError(f"stages {sorted(unknown)} can't be given workers; GEPA has {sorted(DEFAULT_WORKERS)}")
        self._task = task
        self._workers = {**DEFAULT_WORKERS, **(workers or {})}
        self._archive = ParetoArchive()
        self._schedule = MergeSchedule(self.config.max_merges if self.config.merge else 0)
        self.archives = (self._archive, self._schedule)

    @classmethod
    def make(cls, task: Task, config: BaseModel, workers: Mapping[str, int]) -> GEPA:
        return cls(task, GEPAConfig.model_validate(config), workers)

    @property
    def archive(self) -> ParetoArchive:
        return self._archive

    def best(self) -> Candidate | None:
        return self._archive.best()

    def estimate(self) -> Cost:
        return Cost(proposals=1, rollouts=2 * self.config.minibatch)

    def graph(self) -> Graph:
        config, workers, rollouts = self.config, self._workers, Rollouts(self._task)
        train_ids = tuple(example.id for example in self._task.data.train)
        val_ids = tuple(example.id for example in self._task.data.val)
        select = Select(self._archive, self._schedule, config, _selection(config), _components(config), train_ids)
        return Graph(
            (
                Stage("select", select, ("generate", "screen")),
                Stage("generate", Generate(rollouts, config.skip_perfect), ("propose",), workers["generate"]),
                Stage("propose", Propose(), ("screen",), workers["propose"]),
                Stage("repair", Repair(self._archive.best), ("screen",), workers["repair"]),
                Stage(
                    "screen",
                    Screen(rollouts, _acceptance(config)),
                    ("evaluate",),
                    workers["screen"],
                    repair_to="screen",
                ),
                Stage("evaluate", Evaluate(rollouts, val_ids), ("update",), workers["evaluate"], repair_to="screen"),
                Stage("update", Update(), commits=True),
            ),
            entry="select",
            repair="repair",
        )

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        """The seed goes straight to validation, which counts in the budget."""
        seed = context.propose(self._task.seed(), parents=[], operator="seed")
        yield Emit(Proposed(seed, (), ()), to="evaluate")

    def fit(self, context: UpdateContext) -> None:
        if self._archive.best() is None and not context.stopping:
            raise InputError(f"task {self._task.name!r}: the seed could not be evaluated; see the event log for why")


def _selection(config: GEPAConfig) -> Selection:
    match config.candidate_selection:
        case "pareto":
            return Pareto()
        case "current_best":
            return CurrentBest()
        case "epsilon_greedy":
            return EpsilonGreedy(config.epsilon)
        case "top_k_pareto":
            return TopKPareto(config.top_k)


def _components(config: GEPAConfig) -> ComponentSelection:
    return RoundRobin() if config.component_selector == "round_robin" else AllComponents()


def _acceptance(config: GEPAConfig) -> Acceptance:
    return StrictImprovement() if config.acceptance == "strict_improvement" else ImprovementOrEqual()
