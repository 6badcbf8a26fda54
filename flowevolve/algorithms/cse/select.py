"""CSE's population and its sampling (Controlled Self-Evolution, §4.2 and appendix C), and what a child is written from.

`Renew` updates a child that was begun before something was learnt; `RecallFor` looks up experience with other tasks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from random import Random

from flowevolve.algorithms.cse.config import CSEConfig
from flowevolve.algorithms.cse.memory import Memory
from flowevolve.algorithms.cse.payloads import Brief, Operator, Planned
from flowevolve.algorithms.cse.recall import Recall, shown_entries
from flowevolve.algorithms.cse.remember import recollect
from flowevolve.core.assessment import Assessment, NothingWorksError, works
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item, Stale, Ticket
from flowevolve.core.pool import Add, Candidate, Update, Vetoed
from flowevolve.core.record import Record
from flowevolve.prompts.programs import ShownProgram
from flowevolve.stages import as_shown

PLAN = "plan"
"""The label of a program that is described by its plan."""
_FAILURES_SHOWN = 3
"""Prompts show how this many of the latest failed programs failed."""
INTEGRAL = "integral"
"""The metric of problems that measure memory over time: A, lower is better."""


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward F, higher is better: 1 / (A + epsilon) if the problem measures A, else how far the score is above the
    problem's worst, and 0 for a program that failed. An area is never below 0, so a negative metric of that name is
    something else and does not count.
    """

    worst: float
    epsilon: float

    def of(self, candidate: Candidate) -> float:
        if not works(candidate):
            return 0.0
        area = Assessment.of(candidate).metrics.get(INTEGRAL, -1.0)
        if area >= 0:
            return 1 / (area + self.epsilon)
        return max(0.0, candidate.mean_score - self.worst)


class Population:
    """Every program that works and is not vetoed, oldest first, and the last that failed: a function of the log."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.failures: deque[Candidate] = deque(maxlen=_FAILURES_SHOWN)
        """The programs that failed last, oldest first."""
        self._working: list[Candidate] = []
        self._vetoed: set[str] = set()

    @property
    def last_failure(self) -> str | None:
        return Assessment.of(self.failures[-1]).failure if self.failures else None

    def apply(self, update: Update) -> None:
        for change in update.changes:
            match change:
                case Add(candidate=candidate, status="rejected"):
                    self.failures.append(candidate)
                case Add(candidate=candidate):
                    self._working.append(candidate)
                    if candidate.id not in self._vetoed:
                        self.candidates.append(candidate)
                case Vetoed(candidate_id=name, stands=stands):
                    (self._vetoed.add if stands else self._vetoed.discard)(name)
                    self.candidates = [each for each in self._working if each.id not in self._vetoed]
                case _:
                    pass

    def best(self) -> Candidate | None:
        """The program with the highest score, or the oldest of several."""
        return max(self.candidates, key=lambda each: each.mean_score, default=None)


def sample(candidates: Sequence[Candidate], reward: Reward, count: int, random: Random) -> list[Candidate]:
    """Draw up to ``count`` different programs one after another, with probabilities proportional to their rewards, or
    evenly if all rewards are 0.

    A program that was written more than once counts once, under the first of its ids. The draw does not depend on the
    order of the candidates, because programs that are written to plans arrive in any order.
    """
    twins = sorted(candidates, key=lambda each: each.id, reverse=True)
    left = sorted({each.artifact.id: each for each in twins}.values(), key=lambda each: each.id)
    weights = [reward.of(each) for each in left]
    sampled: list[Candidate] = []
    while left and len(sampled) < count:
        place = random.choices(range(len(left)), weights if any(weights) else None)[0]
        sampled.append(left.pop(place))
        del weights[place]
    return sampled


class Selected(Record, kind="cse.selected"):
    """What a step does: the operator, the parents and the best program at that time, by their ids."""

    step: int
    operator: Operator
    parents: tuple[str, ...]
    best: str
    version: int
    failed: tuple[str, ...] = ()
    """The programs that failed last."""


@dataclass(frozen=True)
class Select:
    """Odd steps mutate, even ones cross over; a step is an ordinary ticket, counted from 1. The two parents of a
    crossover are different programs, so as long as there is only one program, it is mutated.
    """

    population: Population
    memory: Memory
    reward: Reward
    config: CSEConfig

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        step = item.expect(Ticket).ordinal + 1
        selected = context.decide(Selected, lambda: self._choose(step, context))
        brief, version = (
            Brief(selected.operator, selected.parents, selected.best, failed=selected.failed),
            selected.version,
        )
        if self.config.local_memory:
            known = recollect(self.memory, context)
            brief, version = replace(brief, local=known.text), known.version
        yield Emit(brief, version=version, derives=selected.parents)

    def _choose(self, step: int, context: StageContext) -> Selected:
        best = self.population.best()
        if best is None:
            raise NothingWorksError
        crosses = self.config.evolution and step % 2 == 0
        parents = sample(self.population.candidates, self.reward, 1 + crosses, context.random)
        operator: Operator = "crossover" if len(parents) > 1 else "mutate" if self.config.evolution else "refine"
        names = tuple(each.id for each in parents)
        return Selected(
            step=step,
            operator=operator,
            parents=names,
            best=best.id,
            version=context.pool.version,
            failed=tuple(each.id for each in self.population.failures),
        )


@dataclass(frozen=True)
class Renew:
    """Gives a child that is not written yet what the run has learnt by now. This costs no call, because what was
    recalled of other tasks and what was found in its parents does not change.
    """

    memory: Memory

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        stale = item.expect(Stale)
        known = recollect(self.memory, context)
        brief = replace(stale.item.expect(Brief), local=known.text)
        yield Emit(brief, to=stale.back_to, version=known.version)


@dataclass(frozen=True)
class RecallFor:
    """Looks up what was learnt with other tasks. The queries for a child are about its first parent and what this run
    has learnt, those for a program to be written to a plan about the plan or, if that is empty, about the form of the
    task's seed. Programs to plans are written before the run has learnt anything.
    """

    recall: Recall

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if isinstance(item.payload, Planned):
            planned = item.payload
            told = ShownProgram({PLAN: planned.plan} if planned.plan else planned.form.artifact, None)
            entries = await self.recall.recall(told, "", context)
            yield Emit(replace(planned, recalled=shown_entries(entries)), to="write")
            return
        brief = item.expect(Brief)
        entries = await self.recall.recall(as_shown(context.pool[brief.parents[0]]), brief.local, context)
        yield Emit(replace(brief, recalled=shown_entries(entries)))
