"""LEVI's committing stage, which also decides what comes next, and an archive of where the run stands.

`Evaluations` decides when LEVI shifts and looks back. It counts evaluations; not every commit is one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from statistics import fmean
from typing import Annotated

from pydantic import Field, PlainSerializer

from flowevolve._util.clock import in_thread
from flowevolve.algorithms.levi.config import LEVIConfig
from flowevolve.algorithms.levi.map_elites import MapElites
from flowevolve.algorithms.levi.payloads import Advice, Brief, Finalist, Operator, Unwritten
from flowevolve.algorithms.levi.proxy import select_proxy
from flowevolve.core.assessment import works
from flowevolve.core.budget import Cost
from flowevolve.core.context import UpdateContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item
from flowevolve.core.pool import SEED, Add, Annotate, Candidate, Note, Update, Vetoed
from flowevolve.core.record import Attributes, Record
from flowevolve.stages import Assessed

_REMEMBERED = 8
"""This many of the latest failures are remembered."""
_SHIFTS_SHOWN = 4
"""The next shift is shown this many of the latest ones."""


class OpeningPlan(Record, kind="levi.plan"):
    """The planned number of diverse seeds, of tries at each, and of variants of each."""

    seeds: int
    tries: int
    variants: int


class UnwrittenSeed(Record, kind="levi.unwritten"):
    """A try at a seed that could not be written. ``last`` says that the opening has used up its share of the budget."""

    reason: str
    last: bool = False


class ChosenColumns(Record, kind="levi.proxy"):
    """The positions of the proxy benchmark's examples, in the order in which they were chosen."""

    columns: tuple[int, ...]


class ProxyBenchmark(Record, kind="levi.proxy"):
    """The examples of the proxy benchmark by their ids."""

    examples: tuple[str, ...]


class NewAdvice(Record, kind="levi.advice"):
    """Advice for the models that write candidates from now on."""

    text: str


class Judged(Record, kind="levi.judged"):
    """Whether a candidate works and is the elite of its cell."""

    candidate: str
    accepted: bool


class FullScores(Attributes):
    """The scores on all examples of a candidate that was a finalist after a proxy benchmark."""

    scores: Mapping[str, float] | None = Field(
        default=None, validation_alias="levi.full", serialization_alias="levi.full"
    )


class EvaluationCost(Attributes):
    """What the evaluation of a candidate cost, in a run with a proxy benchmark."""

    cost: Annotated[Cost, PlainSerializer(Cost.to_json)] = Field(
        default=Cost(), validation_alias="levi.cost", serialization_alias="levi.cost"
    )


def in_full(candidate: Candidate) -> Candidate | None:
    """The candidate with its scores on all examples; None if it was no finalist."""
    scores = FullScores.of(candidate).scores
    return None if scores is None else candidate.scored(scores)


class Progress:
    """Where a run stands: its opening, what candidates are scored on, advice and finalists. A function of the log.

    The opening lasts until the last diverse seed works or is given up.
    """

    def __init__(self) -> None:
        self.variants = 0
        """The number of variants of each seed."""
        self.own: str | None = None
        """The task's own seed, if it works."""
        self.seeds: list[str] = []
        """Diverse seeds that work, oldest first."""
        self.examples: tuple[str, ...] | None = None
        """Ids of the examples that candidates are scored on now; None: all."""
        self.advice = ""
        self.failures: deque[str] = deque(maxlen=_REMEMBERED)
        """Ids of the latest candidates that failed."""
        self.shifts: deque[str] = deque(maxlen=_SHIFTS_SHOWN)
        """Ids of the latest shifts, successful or not, oldest first."""
        self.finalists: dict[str, None] = {}
        """Ids of candidates that were scored on all examples after a proxy benchmark. A new elite empties this."""
        self.measured: float | None = None
        """The best mean score on all examples, of these and of all earlier finalists."""
        self.evaluated = Cost()
        """The cost of all evaluations for which it was noted."""
        self.in_vain = 0
        """Seeds that were given up after all their tries."""
        self.gave_up = False
        """Whether the latest try was the last one at a seed, and failed as well."""
        self._first: str | None = None
        self._open = 0
        self._tries = 1
        self._failed: list[str] = []
        self._wasted = 0

    @property
    def opening(self) -> bool:
        """Whether another seed is to be written."""
        return self._open > 0

    @property
    def shown(self) -> Sequence[str]:
        """Ids of what the next seed has to differ from: the task's own seed, the diverse ones that work, and failed
        tries at this one.
        """
        return [*([] if self._first is None else [self._first]), *self.seeds, *self._failed]

    def whole(self, examples: int) -> Cost:
        """The expected cost of an evaluation on this many examples, estimated from the rollouts so far."""
        rollouts = max(1, self.evaluated.rollouts)
        tokens = ceil(self.evaluated.tokens / rollouts * examples)
        dollars = self.evaluated.dollars / rollouts * examples
        return Cost(rollouts=examples, tokens=tokens, dollars=dollars, evaluations=1)

    def apply(self, update: Update) -> None:
        for change in update.changes:
            match change:
                case Add(candidate=candidate, status=status):
                    self._added(candidate)
                    if status == "confirmed":
                        self.finalists.clear()
                case Note():
                    self._noted(change)
                case Annotate(candidate_id=name, attributes=attributes):
                    scores = FullScores.from_json(attributes).scores
                    if scores is not None:
                        self.finalists[name] = None
                        self.measured = max(fmean(scores.values()), -inf if self.measured is None else self.measured)
                case Vetoed(candidate_id=name):
                    self.finalists.pop(name, None)
                case _:
                    pass

    def _added(self, candidate: Candidate) -> None:
        self.evaluated += EvaluationCost.of(candidate).cost
        failed = not works(candidate)
        if failed:
            self.failures.append(candidate.id)
        if candidate.operator == "shift":
            self.shifts.append(candidate.id)
        if candidate.operator == SEED and self._first is None:
            self._first = candidate.id
            self.own = None if failed else candidate.id
        elif candidate.operator == "diverse" and failed:
            self._failed.append(candidate.id)
            self._tried()
        elif candidate.operator == "diverse":
            self.seeds.append(candidate.id)
            self.gave_up = False
            self._next()

    def _noted(self, note: Note) -> None:
        match note.kind:
            case OpeningPlan.kind:
                plan = OpeningPlan.from_json(note.data)
                self._open, self._tries, self.variants = plan.seeds, plan.tries, plan.variants
            case UnwrittenSeed.kind if UnwrittenSeed.from_json(note.data).last:
                self._open, self.gave_up = 0, False
            case UnwrittenSeed.kind:
                self._wasted += 1
                self._tried()
            case ProxyBenchmark.kind:
                self.examples = ProxyBenchmark.from_json(note.data).examples
            case NewAdvice.kind:
                self.advice = NewAdvice.from_json(note.data).text
            case _:
                pass

    def _tried(self) -> None:
        self.gave_up = len(self._failed) + self._wasted >= self._tries
        if self.gave_up:
            self.in_vain += 1
            self._next()

    def _next(self) -> None:
        self._open -= 1
        self._failed, self._wasted = [], 0


@dataclass(slots=True)
class Evaluations:
    """Fires at every ``every``-th evaluation, and when ``stagnation`` evaluations in a row have not raised the best
    score, then again after as many more. 0: never.

    Every evaluated candidate is added to the pool, those that failed as ``rejected``.
    """

    name: str
    stage: str
    every: int
    stagnation: int = 0
    _count: int = 0
    _without: int = 0

    def fires(self, update: Update, improved: bool) -> bool:
        evaluated = sum(isinstance(change, Add) for change in update.changes)
        if not evaluated:
            return False
        before = self._count
        self._count += evaluated
        self._without = 0 if improved else self._without + evaluated
        due = self.every > 0 and before // self.every < self._count // self.every
        stagnant = 0 < self.stagnation <= self._without
        if stagnant:
            self._without = 0
        return due or stagnant


@dataclass(frozen=True)
class Commit:
    """Adds a candidate as confirmed if it is the elite of its cell, else as rejected. So every evaluation is a commit.

    Emits the next diverse seed, variants of seeds and of shifts, and a new elite that reaches the target by the proxy
    benchmark, so that it is scored on all examples. When the opening is over it chooses the proxy benchmark; from then
    on, candidates that were scored on all examples count by their scores on the chosen ones. ``cases`` are the ids of
    all examples, ``target_score`` is the run's.
    """

    archive: MapElites
    progress: Progress
    config: LEVIConfig
    cases: Sequence[str]
    target_score: float | None = None

    async def __call__(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        match item.payload:
            case Advice(text=text):
                context.commit([NewAdvice(text=text).note()])
            case Finalist(candidate=candidate):
                context.commit([FullScores(scores=candidate.scores).annotation(candidate.id)])
            case Unwritten(reason=reason, last=last):
                context.commit([UnwrittenSeed(reason=reason, last=last).note()])
                for emission in await self._open(None, context):
                    yield emission
            case _:
                candidate, accepted = self._enter(item.expect(Assessed), context)
                for emission in await self._follow(candidate, accepted, context):
                    yield emission

    def _enter(self, assessed: Assessed, context: UpdateContext) -> tuple[Candidate, bool]:
        candidate, works = assessed.candidate, assessed.failure is None
        accepted = context.decide(
            Judged, lambda: Judged(candidate=candidate.id, accepted=works and self.archive.admits(candidate))
        ).accepted
        context.commit([Add(candidate, "confirmed" if accepted else "rejected")])
        return candidate, accepted

    async def _follow(self, candidate: Candidate, accepted: bool, context: UpdateContext) -> list[Emit]:
        if candidate.operator in (SEED, "diverse"):  # all that work are accepted: no cells yet
            return await self._open(candidate if accepted else None, context)
        if not accepted:
            return []
        variants = self.config.shift_variants if candidate.operator == "shift" else 0
        return [*self._to_measure(candidate), *[_brief("variant", [candidate.id], context)] * variants]

    def _to_measure(self, elite: Candidate) -> list[Emit]:
        """The new elite as a finalist, if it reaches the target on the proxy benchmark."""
        if self.progress.examples is None or self.target_score is None or elite.mean_score < self.target_score:
            return []
        return [Emit(Finalist(elite), to="evaluate", derives=(elite.id,))]

    async def _open(self, seed: Candidate | None, context: UpdateContext) -> list[Emit]:
        """What comes after a seed, or a failed try at one: the next seed, and variants of this one, unless variants
        wait for the proxy benchmark. In place of a seed that was given up, the task's own seed gets variants.
        """
        progress = self.progress
        own = [] if progress.own is None else [progress.own]
        parents: list[str] = []
        if self.config.proxy > 0:
            if not progress.opening:
                await self._choose_proxy(context)
                parents = progress.seeds + own * progress.in_vain
        elif seed is None:
            parents = own if progress.gave_up else []
        elif seed.operator == "diverse":
            parents = [seed.id]
        following = [_brief("diverse", progress.shown, context, opening=True)] if progress.opening else []
        variants = [_brief("variant", [name], context, opening=True) for name in parents]
        return [*following, *(variant for variant in variants for _ in range(progress.variants))]

    async def _choose_proxy(self, context: UpdateContext) -> None:
        known = [each for each in self.archive.candidates if all(case in each.scores for case in self.cases)]
        if self.progress.examples is not None or self.config.proxy >= len(self.cases):
            return
        if len(known) < 2:
            context.log("levi.no_proxy", reason="fewer than two seeds work")
            return
        matrix = [[each.scores[case] for case in self.cases] for each in known]

        async def make() -> ChosenColumns:
            return ChosenColumns(columns=await in_thread(select_proxy, matrix, self.config.proxy))

        columns = (await context.once(ChosenColumns, make)).columns
        examples = tuple(self.cases[column] for column in sorted(columns))
        rebased = [Annotate(each.id, {}, {case: each.scores[case] for case in examples}) for each in known]
        context.commit([ProxyBenchmark(examples=examples).note(), *rebased])


def _brief(operator: Operator, shown: Sequence[str], context: UpdateContext, *, opening: bool = False) -> Emit:
    names = tuple(shown)
    return Emit(Brief(operator, names, opening=opening), to="write", version=context.pool.version, derives=names)
