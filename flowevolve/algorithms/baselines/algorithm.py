"""Best of N and (1+λ) over programs, as a graph.

    write ─▶ assess ─▶ update

Only the best program so far is kept. Best of N writes children of the seed, (1+λ) of the best program.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import ClassVar

from flowevolve._util.errors import InputError
from flowevolve.core.algorithm import SEE_LOG, Algorithm, Tuning, Workers, check_components
from flowevolve.core.assessment import Assessment, works
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import Discard, Emit, Graph
from flowevolve.core.item import Item
from flowevolve.core.pool import SEED, Add, Candidate, Update, Vetoed
from flowevolve.core.record import Record
from flowevolve.core.task import Task
from flowevolve.programs.task import check_programs, seed_fails
from flowevolve.prompts.programs import program_prompt
from flowevolve.stages import Assess, Assessed, Rollouts, WritingSettings, Written, as_shown, committing, write_program

ROLE = "code"
DEFAULT_WORKERS: Mapping[str, Workers] = {"write": Workers(16), "assess": Workers(16)}


class Best:
    """An archive of the best candidate so far, the newest of equally good ones, and of the seed, even if it fails."""

    def __init__(self) -> None:
        self.candidate: Candidate | None = None
        self.seed: Candidate | None = None
        self._taken: list[Candidate] = []
        """All candidates that were the best when they were added, oldest first."""
        self._vetoed: set[str] = set()

    def apply(self, update: Update) -> None:
        for change in update.changes:
            match change:
                case Add(candidate=candidate, status=status):
                    if candidate.operator == SEED:
                        self.seed = candidate
                    if status != "rejected" and not self.beats(candidate):
                        self._taken.append(candidate)
                        self.candidate = self.candidate if self.vetoed(candidate) else candidate
                case Vetoed(candidate_id=name, stands=stands):
                    (self._vetoed.add if stands else self._vetoed.discard)(name)
                    standing = (each for each in reversed(self._taken) if not self.vetoed(each))
                    self.candidate = max(standing, key=lambda each: each.mean_score, default=None)
                case _:
                    pass

    def vetoed(self, candidate: Candidate) -> bool:
        return candidate.id in self._vetoed

    def beats(self, other: Candidate) -> bool:
        """Whether the best candidate is better than this one."""
        return self.candidate is not None and self.candidate.mean_score > other.mean_score


class SearchConfig(WritingSettings):
    """λ, the number of children under way at a time, is ``max_in_flight``, or in lockstep ``width``."""


class Selected(Record, kind="parent.selected"):
    """The program whose child is written."""

    parent: str
    version: int


class Judged(Record, kind="candidate.judged"):
    """Whether a child takes the place of the best program."""

    accepted: bool


class OnePlusLambda(Algorithm[SearchConfig]):
    """(1+λ): every child is written from the best program so far, the newest of equally good ones.

    Raises:
        InputError: if the task is not one of programs, or the tuning does not suit it.
    """

    name = "one_plus_lambda"
    description = (
        "Programs. Each is a change of the best one so far, and the prompt shows no others.\n"
        "For any budget and model. Try it first: a more elaborate search may not be worth its price."
    )
    config_type = SearchConfig
    roles: ClassVar = (ROLE,)
    staleness = "full"

    def __init__(self, task: Task, config: SearchConfig | None = None, tuning: Tuning | None = None) -> None:
        task = check_programs(task, self.name)
        super().__init__(task, config or SearchConfig(), tuning or Tuning())
        self._task = task
        self._workers = self.tuning.workers_of(DEFAULT_WORKERS)
        self._writing = self.config.writing(task.problem)
        self._best = Best()
        self.archives = (self._best,)

    def best(self) -> Candidate | None:
        return self._best.candidate

    def parent(self, best: Candidate) -> Candidate:
        """The program whose child is written next."""
        return best

    def inject(self, candidate: Candidate) -> Emit:
        return Emit(Written(check_components(candidate, self._task.seed())), to="assess")

    def check_veto(self, candidate: Candidate) -> None:
        """Any candidate can be taken out."""

    def estimate(self, trigger: str | None = None) -> Cost:
        return Cost(proposals=1, evaluations=1, rollouts=len(self._task.problem.cases))

    def graph(self) -> Graph:
        return Graph(
            (
                self._workers.stage("write", self._write, "assess"),
                self._workers.stage("assess", Assess(Rollouts(self._task), self._task), "update"),
                committing("update", self._update),
            ),
            entry="write",
        )

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        yield self.inject(context.propose(self._task.seed(), parents=[], operator=SEED))

    async def fit(self, context: UpdateContext) -> None:
        """Only checks that there is a program to begin with."""
        if not context.stopping:
            self._check_best()

    def _check_best(self) -> Candidate:
        """The best program so far.

        Raises:
            InputError: if there is none, as the seed was not evaluated or fails.
        """
        best, seed = self.best(), self._best.seed
        if best is not None:
            return best
        if seed is None:
            raise InputError(f"task {self._task.name!r}: the seed could not be evaluated; {SEE_LOG}")
        raise seed_fails(self._task, Assessment.of(seed).failure)

    async def _write(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        chosen = self.parent(self._check_best())
        selected = context.decide(Selected, lambda: Selected(parent=chosen.id, version=context.pool.version))
        parent, version = context.pool[selected.parent], selected.version
        asked = self._writing.forms.assign(parent, (), context)
        others = [as_shown(each) for each in asked.others]
        statement = self._task.problem.statement
        prompt = program_prompt(
            context.templates,
            statement,
            as_shown(asked.parent),
            form=asked.form,
            change=asked.change or "improve",
            others=others,
            further=asked.further,
        )
        child = await write_program(
            asked.parent,
            prompt,
            asked.form,
            context,
            role=ROLE,
            operator="write",
            parents=asked.parents([parent]),
            born=version,
            attributes=asked.attributes,
            writing=self._writing,
            others=asked.others,
        )
        yield Emit(Written(child), version=version, derives=(parent.id,))

    async def _update(self, item: Item[object], context: UpdateContext) -> None:
        assessed = item.expect(Assessed)
        candidate = assessed.candidate
        if assessed.failure is not None:
            if self._writing.forms.mends or candidate.operator == SEED:
                context.commit([Add(candidate, "rejected")])
                return
            raise Discard(f"failed: {assessed.failure}")
        if not context.decide(Judged, lambda: Judged(accepted=not self._best.beats(candidate))).accepted:
            raise Discard("not as good as the best")
        context.commit([Add(candidate)])


class BestOfN(OnePlusLambda):
    """Every child is written from the seed; the best of them wins."""

    name = "best_of_n"
    description = (
        "Programs. Each is a change of the seed, and the best one wins.\n"
        "For any budget and model, as a baseline: it shows what the model does without a search."
    )

    def parent(self, best: Candidate) -> Candidate:
        """The seed, or the best program if the seed does not work or is vetoed."""
        seed = self._best.seed
        return best if seed is None or not works(seed) or self._best.vetoed(seed) else seed
