"""GEPA, reflective prompt evolution (Agrawal et al., arXiv 2507.19457), as a graph.

    select ─▶ generate ─▶ propose ─▶ screen ─▶ evaluate ─▶ update
       └────────── merge ──────────────▲
                  repair ──────────────┘   (stale proposals)

With ``group`` a stage between screen and evaluate merges edits (`flowevolve.stages.group_commit`). With ``prune`` some
flows go from select through a stage ``prune`` to evaluate (`flowevolve.algorithms.gepa.prune`). With ``remeasure`` some
go from select through a stage ``remeasure`` to update (`flowevolve.stages.remeasure`). A repaired proposal is screened
before it is evaluated, wherever it went stale, because the patched text has not been run on anything yet.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from random import Random
from typing import ClassVar

from pydantic import BaseModel

from flowevolve._util.errors import InputError
from flowevolve.algorithms.gepa.config import GEPAConfig
from flowevolve.algorithms.gepa.prune import Pruning
from flowevolve.algorithms.gepa.select import MergeSchedule, Select
from flowevolve.algorithms.gepa.validation_order import ValidationOrder
from flowevolve.archives.base import ARCHIVES, CandidateArchive
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.algorithm import SEE_LOG, Algorithm, Tuning, Workers, check_components
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.fresh_score import FreshScore
from flowevolve.core.graph import NO_EMISSIONS, Emit, Graph, Stage
from flowevolve.core.policies import BatchSize, NoRacing, ValidationAcceptance
from flowevolve.core.pool import SEED, Candidate
from flowevolve.core.task import Task
from flowevolve.policies.acceptance import (
    Everything,
    Front,
    Improvement,
    ImprovementOrEqual,
    Paired,
    StrictImprovement,
)
from flowevolve.policies.departure import Balance
from flowevolve.policies.racing import Prefix
from flowevolve.policies.selection import (
    AllComponents,
    CurrentBest,
    EpsilonGreedy,
    Pareto,
    RoundRobin,
    Selection,
    TopKPareto,
)
from flowevolve.programs.task import check_no_programs
from flowevolve.prompts.gepas import gepas_reflection
from flowevolve.prompts.reflection import reflect_on
from flowevolve.stages import (
    Commit,
    Evaluate,
    FinalSelection,
    FinalSettings,
    Generate,
    GroupCommit,
    Head,
    Noise,
    PairedScreen,
    Propose,
    Proposed,
    Remeasure,
    Remeasuring,
    Repair,
    Rollouts,
    Screen,
    Way,
    committing,
)

DEFAULT_WORKERS: Mapping[str, Workers] = {
    "generate": Workers(8),
    "propose": Workers(8),
    "screen": Workers(8),
    "evaluate": Workers(8),
    "repair": Workers(4),
}
"""Workers in streaming mode; select and update have one each. There are enough of them that only the bound on open
flows limits how much runs at a time.
"""
SELECTIONS: Mapping[str, Callable[[GEPAConfig], Selection]] = {
    "pareto": lambda config: Pareto(),
    "current_best": lambda config: CurrentBest(),
    "epsilon_greedy": lambda config: EpsilonGreedy(config.epsilon),
    "top_k_pareto": lambda config: TopKPareto(config.top_k),
}
VALIDATIONS: Mapping[str, Callable[[], ValidationAcceptance]] = {
    "everything": Everything,
    "improvement": Improvement,
    "front": Front,
}
WAYS: Mapping[Way, float] = {"model": 1.0, "lines": 0.5, "each": 0.3}
"""The ways to merge edits that wait for validation, each with the success rate assumed before anything is known."""
SPECULATING = ("generate", "evaluate")
"""Stages that can release a part of their results early."""


class GEPA(Algorithm[GEPAConfig]):
    """Raises:
    InputError: if the task is one of programs, has no training or validation examples, or the tuning does not suit
        GEPA.
    """

    name = "gepa"
    description = (
        "Prompts of one or more parts, if you have rows and a metric. Start with this one.\n"
        "For a few hundred metric calls and more, with a model that can say what went wrong."
    )
    config_type: ClassVar[type[BaseModel]] = GEPAConfig
    speculates = True
    races = True
    default_workers: ClassVar[Mapping[str, Workers]] = DEFAULT_WORKERS
    _step_width: BatchSize | None = None

    def __init__(self, task: Task, config: GEPAConfig | None = None, tuning: Tuning | None = None) -> None:
        super().__init__(task, config or GEPAConfig(), tuning or Tuning())
        check_no_programs(task, self.name)
        if not task.data.train or not task.data.val:
            raise InputError(f"task {task.name!r}: GEPA needs training and validation examples")
        self._workers = self.tuning.workers_of(self.default_workers)
        _check_fronts(self.config, self.tuning)
        self._write = gepas_reflection() if self.config.reflection_prompt == "gepa" else reflect_on
        self._acceptance = _validation(self.config, self.tuning)
        if self.config.group:
            self.staleness = "full"  # edits are rebased when they are merged, so none is too old
        self._archive = ARCHIVES.make(self.config.archive.name, self.config.archive.settings, "algorithm.archive")
        self._schedule = MergeSchedule(self.config.max_merges if self.config.merge else 0)
        self._val_order = _running_order([example.id for example in task.data.val], self.tuning)
        self._order = ValidationOrder(self._val_order, self.tuning.speculation.window)
        self._head = Head(self._archive.best, WAYS) if self.config.group else None
        self._noise = Noise()
        self._final = FinalSelection(
            FinalSettings(self.config.finalists, self.config.final_examples), task.data, validating="evaluate"
        )
        # This many edits cost about as much as one validation.
        every = math.ceil(len(task.data.val) / (2 * self.config.minibatch))
        self._pruning = Pruning(task.seed(), self._archive.best, every) if self.config.prune else None
        self._remeasuring = Remeasuring(self._archive.best, 2 * every) if self.config.remeasure else None
        self._select = self._select_type()(
            self._archive,
            self._schedule,
            self.config,
            SELECTIONS[self.config.candidate_selection](self.config),
            RoundRobin() if self.config.component_selector == "round_robin" else AllComponents(),
            tuple(example.id for example in task.data.train),
            self._head,
            self._pruning,
            self._remeasuring,
        )
        optional = (self._head, self._pruning, self._remeasuring)
        self._optional = tuple(each for each in optional if each is not None)
        self.archives = (self._archive, self._schedule, self._order, self._select.cursors, *self._optional)

    @property
    def archive(self) -> CandidateArchive:
        return self._archive

    def best(self) -> Candidate | None:
        """The best candidate by validation, or the winner of the final selection once there is one."""
        chosen = self._final.chosen
        return self._archive.best() if chosen is None else self._archive[chosen.candidate]

    def fresh_score(self) -> FreshScore | None:
        return self._final.chosen

    def frontier(self) -> Sequence[Candidate]:
        return [self._archive[name] for name in self._archive.weights()]

    def inject(self, candidate: Candidate) -> Emit:
        return Emit(Proposed(check_components(candidate, self.task.seed()), (), ()), to="evaluate")

    def check_veto(self, candidate: Candidate) -> None:
        if not isinstance(self._archive, ParetoArchive):
            raise InputError("veto: the archive is a plug-in, and might go on using a candidate that is vetoed")

    def estimate(self, trigger: str | None = None) -> Cost:
        """One proposal. With speculation in generate a flow may make more, if the budget has room for them then."""
        return Cost(proposals=1, rollouts=2 * self.config.minibatch)

    def estimate_finish(self, share_of: Callable[[Cost], float]) -> Cost:
        """One validation, so that the last edits can still be validated and are not wasted."""
        return Cost(rollouts=len(self.task.data.val), evaluations=1)

    def reserve_for_finish(self, share_of: Callable[[Cost], float]) -> Cost:
        return self._final.kept(share_of)

    def graph(self) -> Graph:
        config, rollouts, speculation = self.config, Rollouts(self.task), self.tuning.speculation
        proposing = self._proposing()
        generate = Generate(rollouts, config.skip_perfect, speculation)
        grouping, detours = self._grouping(), (*self._prune(rollouts), *self._remeasure(rollouts))
        after_screen = (*(stage.name for stage in grouping), "evaluate")
        # A selection goes stale while it waits, so generate's queue is short: tickets wait before selection instead.
        return Graph(
            (
                Stage("select", self._select, ("generate", "screen", *(stage.name for stage in detours))),
                self._workers.stage("generate", generate, proposing[0].name, capacity=1),
                *proposing,
                self._workers.stage("repair", Repair(self._archive.best), "screen"),
                self._workers.stage("screen", self._screen(rollouts), *after_screen, repair_to="screen"),
                *grouping,
                *detours,
                self._workers.stage("evaluate", self._evaluate(rollouts), "update", repair_to="screen"),
                committing("update", Commit(self._archive.standing, self._acceptance)),
            ),
            entry="select",
            repair="repair",
            validation=next((stage.name for stage in grouping), None),
            step_width=self._step_width,
        )

    def _select_type(self) -> Callable[..., Select]:
        """What makes the entry stage."""
        return Select

    def _proposing(self) -> tuple[Stage, ...]:
        """The stages from rollouts to proposals."""
        return (self._workers.stage("propose", Propose(self._write), "screen"),)

    def _grouping(self) -> tuple[Stage, ...]:
        """The stage, if any, that merges edits into a candidate worth validating."""
        if self._head is None:
            return ()
        departs = Balance(self.config.balance)
        return (Stage("group", GroupCommit(self._head), ("evaluate",), gather=32, departs=departs),)

    def _screen(self, rollouts: Rollouts) -> Screen:
        config = self.config
        match config.acceptance:
            case "strict_improvement":
                return Screen(rollouts, StrictImprovement())
            case "improvement_or_equal":
                return Screen(rollouts, ImprovementOrEqual())
            case "paired":
                paired = Paired(config.acceptance_z, config.acceptance_repeats)
                return PairedScreen(rollouts=rollouts, acceptance=paired, noise=self._noise)

    def _prune(self, rollouts: Rollouts) -> tuple[Stage, ...]:
        """The stage, if any, that tests whether the best candidate without some of its lines is worth validating."""
        return () if self._pruning is None else (Stage("prune", Screen(rollouts, ImprovementOrEqual()), ("evaluate",)),)

    def _remeasure(self, rollouts: Rollouts) -> tuple[Stage, ...]:
        """The stage, if any, that runs the best candidate on the validation set again."""
        if self._remeasuring is None:
            return ()
        return (Stage("remeasure", Remeasure(rollouts, self._val_order), ("update",)),)

    def _evaluate(self, rollouts: Rollouts) -> Evaluate:
        val_ids = tuple(example.id for example in self.task.data.val)
        return Evaluate(
            rollouts,
            val_ids,
            self._order if self.tuning.speculation.reorder else lambda: self._val_order,
            self._archive.standing,
            self.tuning.speculation,
            self.tuning.racing,
            self._acceptance,
        )

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        """Send the seed straight to validation, which counts towards the budget."""
        seed = context.propose(self.task.seed(), parents=[], operator=SEED)
        yield self.inject(seed)

    def apply_event(self, event: Event) -> None:
        self._select.apply_event(event)
        self._final.apply_event(event)
        self._noise.apply_event(event)
        for each in self._optional:
            each.apply_event(event)

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        """Choose the winner; nothing more is evolved."""
        if self.config.finalists:
            await self._final.run(Rollouts(self.task), self._archive.best(), context)
        for emission in NO_EMISSIONS:
            yield emission

    async def fit(self, context: UpdateContext) -> None:
        if self._archive.best() is None and not context.stopping:
            raise InputError(f"task {self.task.name!r}: the seed could not be evaluated; {SEE_LOG}")


def _running_order(val_ids: list[str], tuning: Tuning) -> tuple[str, ...]:
    """The order in which examples are run at first: that of the data, or a shuffled one if racing treats the first
    examples as a sample of all. The shuffle is the same in every run.
    """
    return tuple(Random(0).sample(val_ids, len(val_ids)) if tuning.racing.needs_improvement else val_ids)


def _check_fronts(config: GEPAConfig, tuning: Tuning) -> None:
    """Raises: InputError if there are fronts for objectives, and evaluations may end before these are measured."""
    fronts = config.archive.settings.get("fronts", "instance")
    if fronts != "instance" and (tuning.speculation.active("evaluate") or not isinstance(tuning.racing, NoRacing)):
        raise InputError(
            f'algorithm.archive.fronts: {fronts!r} needs whole evaluations; set racing.policy = "off" and leave '
            "speculation.alpha.evaluate out"
        )


def _validation(config: GEPAConfig, tuning: Tuning) -> ValidationAcceptance:
    unknown = sorted(set(tuning.speculation.alpha) - set(SPECULATING))
    if unknown:
        raise InputError(
            f"speculation.alpha: GEPA can speculate in {', '.join(SPECULATING)}, not in {', '.join(unknown)}"
        )
    if isinstance(tuning.racing, Prefix) and not tuning.speculation.active("evaluate"):
        raise InputError(
            'racing.policy = "prefix" stops evaluations at the speculative prefix, and there is none; set '
            "speculation.alpha.evaluate below 1"
        )
    by_mean = tuning.speculation.active("evaluate") or tuning.racing.needs_improvement
    name = config.validation or ("improvement" if by_mean else "everything")
    if tuning.racing.needs_improvement and name != "improvement":
        raise InputError(
            f"racing.policy stops evaluations by their mean score, but algorithm.validation {name!r} needs the scores "
            'on all examples; set algorithm.validation = "improvement", or racing.policy = "bound"'
        )
    return VALIDATIONS[name]()
