"""LEVI (Tanveer, 2026) as a graph.

    select ─▶ write ─▶ evaluate ─▶ update
               ▲ ▲         ▲         │ variants of seeds and shifts, the next seed
    shift ─────┘ └─────────┴─────────┘ elites that reach the target on the proxy
    advise ──────────────────────▶ update

Seeds, their variants and the fit of the archive are the init phase; shift and advise are set off by evaluations.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import ClassVar

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.algorithms.levi.commit import Commit, Evaluations, OpeningPlan, Progress, in_full
from flowevolve.algorithms.levi.config import LEVIConfig
from flowevolve.algorithms.levi.evaluate import Cascade, Describe, Evaluate, described
from flowevolve.algorithms.levi.map_elites import Described, MapElites
from flowevolve.algorithms.levi.payloads import Finalist
from flowevolve.algorithms.levi.select import Selection
from flowevolve.algorithms.levi.write import LARGE, SMALL, Write, make_writer
from flowevolve.archives.descriptors import Space, check_ribs, fit_space, load_ribs
from flowevolve.core.algorithm import SEE_LOG, Algorithm, Tuning, Workers, check_components
from flowevolve.core.assessment import Assessment
from flowevolve.core.budget import Cost
from flowevolve.core.context import PoolReader, StageContext, UpdateContext
from flowevolve.core.graph import CommittingStage, Emit, Graph, Stage, Trigger
from flowevolve.core.item import Item
from flowevolve.core.pool import SEED, Candidate
from flowevolve.core.record import Record
from flowevolve.core.task import Task
from flowevolve.programs.task import ProgramTask
from flowevolve.stages import Assess, Rollouts, Written

DEFAULT_WORKERS: Mapping[str, Workers] = {
    "shift": Workers(2),
    "advise": Workers(1),
    "write": Workers(16),
    "evaluate": Workers(8),
}
"""Workers in streaming mode; select and update have one each."""
SHIFT = "shift"


class Planned(Record, kind="levi.planned"):
    """How many diverse seeds, and how many variants of each, there is budget for."""

    seeds: int
    variants: int


class Finalists(Record, kind="levi.finalists"):
    """The elites that are to be scored on all examples, by their ids."""

    shown: tuple[str, ...]


class LEVI(Algorithm[LEVIConfig]):
    """Raises:
    InputError: if the task has nothing to evolve or to score on, a setting does not suit it, or ribs is not installed.
    """

    name = "levi"
    description = (
        "Programs with solutions worth keeping for being unlike others; prompts with expensive rollouts.\n"
        "For a few hundred evaluations: a small model makes most changes, a large one the leaps."
    )
    config_type = LEVIConfig
    roles: ClassVar[Sequence[str]] = ("task", LARGE, SMALL)
    staleness = "full"

    def __init__(self, task: Task, config: LEVIConfig | None = None, tuning: Tuning | None = None) -> None:
        super().__init__(task, config or LEVIConfig(), tuning or Tuning())
        if not task.data.val:
            raise InputError(f"task {task.name!r}: LEVI needs cases or validation examples to score on")
        check_ribs("algorithm levi")
        self._workers = self.tuning.workers_of(DEFAULT_WORKERS)
        self._all = tuple(example.id for example in task.data.val)
        self.archive = MapElites()
        self._progress = Progress()
        self.archives = (self.archive, self._progress)
        self._rollouts = Rollouts(task)
        self._writer = make_writer(task, self.config, self._rollouts)
        self._describe = Describe(task.seed(), self._cases, self.config.features, self.config.outputs)

    def _cases(self) -> Sequence[str]:
        """Ids of the examples that candidates are scored on now."""
        return self._all if self._progress.examples is None else self._progress.examples

    def best(self) -> Candidate | None:
        """The best finalist, as only these are scored on all examples; the best elite if there are no finalists."""
        return max(self.frontier(), key=lambda each: each.mean_score, default=None)

    def frontier(self) -> Sequence[Candidate]:
        """The finalists with their scores on all examples, or the elites if there are no finalists."""
        finalists = [in_full(self.archive[name]) for name in self._progress.finalists]
        return [each for each in finalists if each is not None] or self.archive.elites

    def measured_score(self, best_score: float | None) -> float | None:
        """After a proxy benchmark was chosen, the best score on all examples since then."""
        return best_score if self._progress.examples is None else self._progress.measured

    def inject(self, candidate: Candidate) -> Emit:
        return Emit(Written(check_components(candidate, self.task.seed())), to="evaluate")

    def check_veto(self, candidate: Candidate) -> None:
        """Any candidate can be taken out."""

    def estimate(self, trigger: str | None = None) -> Cost:
        if trigger == "advice":
            return Cost()
        count = 1 + (self.config.shift_variants if trigger == SHIFT else 0)
        return self._cost(count, len(self._cases()))

    def _cost(self, candidates: int, cases: int) -> Cost:
        """The cost of writing this many candidates and scoring each on this many cases."""
        rollouts = candidates * (self._writer.rollouts + cases)
        return Cost(proposals=candidates, evaluations=candidates, rollouts=rollouts)

    def _expected(self) -> Cost:
        """The cost of one candidate, with the examples that candidates are scored on now."""
        return self._cost(1, len(self._cases()))

    def estimate_finish(self, share_of: Callable[[Cost], float]) -> Cost:
        """The cost of scoring on all examples those elites that would be finalists now and were not before, and one
        more. It is at most half of the budget that the opening leaves.
        """
        if self._progress.examples is None:
            return Cost()
        new = sum(in_full(elite) is None for elite in self._leading())
        whole, room = self._progress.whole(len(self._all)), (1 - self.config.init_share) / 2
        costs = accumulate([whole] * min(new + 1, self.config.finalists), initial=Cost())
        return max((cost for cost in costs if share_of(cost) <= room), key=lambda cost: cost.evaluations)

    def gap(self, item: Item[object], pool: PoolReader) -> int:
        """How many of the candidates that the item was made from are no longer elites."""
        return sum(name not in self.archive for name in item.derives)

    def graph(self) -> Graph:
        config, archive, progress = self.config, self.archive, self._progress
        cascade = Cascade(archive, self._cases, config.cascade_examples, config.cascade_fraction)
        narrow = Assess(self._rollouts, self.task, cascade, self._cases)
        evaluate = Evaluate(narrow, Assess(self._rollouts, self.task), self._describe, config.proxy > 0)
        selection = Selection(archive, progress, config, self._writer)
        write = Write(self._writer, config.init_share, self._expected)
        commit = Commit(archive, progress, config, self._all, self.tuning.target_score)
        # A selection goes stale while it waits, so write's queue is short: tickets wait before selection instead.
        return Graph(
            (
                Stage("select", selection.select, ("write",)),
                self._workers.stage("shift", selection.shift, "write"),
                self._workers.stage("advise", selection.advise, "update"),
                self._workers.stage("write", write, "evaluate", "update", capacity=1),
                self._workers.stage("evaluate", evaluate, "update"),
                CommittingStage("update", commit, ("write", "evaluate")),
            ),
            entry="select",
            triggers=self._triggers(),
        )

    def _triggers(self) -> tuple[Trigger, ...]:
        config = self.config
        shift = Evaluations(SHIFT, "shift", config.shift_every, config.shift_stagnation)
        advice = Evaluations("advice", "advise", config.advice_every)
        return tuple(each for each in (shift, advice) if each.every or each.stagnation)

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        """Emit the task's own seed; the update stage decides what follows it."""
        await in_thread(load_ribs)
        plan = context.decide(Planned, lambda: self._plan(context))
        context.commit([OpeningPlan(seeds=plan.seeds, tries=self.config.seed_tries, variants=plan.variants).note()])
        yield self.inject(context.propose(self.task.seed(), parents=[], operator=SEED))

    def _plan(self, context: StageContext) -> Planned:
        """As many seeds and variants as there is budget for. If it is short, variants are given up first."""
        seeds, variants = self.config.seeds, self.config.variants
        narrow = min(self.config.proxy or len(self._all), len(self._all))

        def affordable() -> bool:
            cost = self._cost(1 + seeds, len(self._all)) + self._cost(seeds * variants, narrow)
            return context.share(cost) <= self.config.init_share

        while variants and not affordable():
            variants -= 1
        while seeds and not affordable():
            seeds -= 1
        return Planned(seeds=seeds, variants=variants)

    async def fit(self, context: UpdateContext) -> None:
        """Fit the space of behaviours to the candidates so far, described by what they are scored on now."""
        candidates = [described(each, self._describe) for each in self.archive.candidates]
        if not candidates:
            if context.stopping:
                return
            failed = [Assessment.of(context.pool[name]).failure or "" for name in self._progress.failures]
            if failed and isinstance(self.task, ProgramTask):
                failed[-1] = self.task.failure_said(failed[-1])
            why = f"the last failed: {failed[-1]}" if failed else SEE_LOG
            raise InputError(f"task {self.task.name!r}: neither the seed nor anything made of it works; {why}")
        descriptors = {each.id: Described.of(each) for each in candidates}
        names = self._describe.names()
        unknown = [name for name in names if not any(name in each.descriptor for each in descriptors.values())]
        if unknown:
            raise InputError(self._describe.missing(unknown))
        seed = context.derive_random("levi.space").getrandbits(31)
        config = self.config

        known = [each.descriptor for each in descriptors.values()]
        fit = partial(fit_space, known, names, cells=config.cells, placement=config.centroids, seed=seed)

        async def make() -> Mapping[str, JSON]:
            return (await in_thread(fit)).to_json()

        await in_thread(load_ribs)
        space = Space.from_json(await context.once("levi.fitted", make))
        measured = [each.annotation(name) for name, each in descriptors.items()]
        context.commit([*(measured if self._progress.examples is not None else ()), space.note()])

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        """After a proxy benchmark, score the best elites on all examples, as far as the budget goes."""
        if self._progress.examples is None:
            return
        for name in context.decide(Finalists, lambda: self._finalists(context)).shown:
            yield Emit(Finalist(context.pool[name]), to="evaluate", derives=(name,))

    def _leading(self) -> Sequence[Candidate]:
        """The best elites, at most as many as there may be finalists."""
        return sorted(self.archive.elites, key=lambda each: -each.mean_score)[: self.config.finalists]

    def _finalists(self, context: StageContext) -> Finalists:
        """The best elites, as far as the budget goes. Those that were finalists before cost nothing. If a limit is
        passed already, candidates that take nothing more of it are still allowed.
        """
        whole, cost, limit = self._progress.whole(len(self._all)), Cost(), max(1.0, context.share())
        chosen: list[str] = []
        for elite in self._leading():
            more = whole if in_full(elite) is None else Cost()
            if context.share(cost + more) <= limit:
                cost += more
                chosen.append(elite.id)
        return Finalists(shown=tuple(chosen))
