"""Meta-Harness's stages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from flowevolve._util.errors import InputError
from flowevolve._util.tasks import run_all
from flowevolve.algorithms.meta_harness.config import MetaHarnessConfig
from flowevolve.algorithms.meta_harness.evaluator import Benchmark, Evaluator, HarnessError, SetScores, check
from flowevolve.algorithms.meta_harness.frontier import Frontier, Result
from flowevolve.algorithms.meta_harness.payloads import Benchmarked, Checked, Invalid
from flowevolve.algorithms.meta_harness.proposer import Proposer
from flowevolve.algorithms.meta_harness.view import View, files
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.pool import Add, Annotate
from flowevolve.core.record import Record
from flowevolve.stages import Written
from flowevolve.tasks.labelling import COMPONENT, HarnessTask, LabelledSet, harness

_MISTAKES = 8
"""At most this many mistakes are kept per data set."""


class Seen(Record, kind="harness.view"):
    """The version of the pool that a proposer is shown, and the best harness in it."""

    version: int
    best: tuple[str, ...]


class Wrote(Record, kind="harness.wrote"):
    """How many harnesses a proposer wrote, and how many proposers in a row wrote none."""

    harnesses: int
    in_vain: int


class ImportCheck(Record, kind="harness.checked"):
    """Why a harness can't be run; None if it can."""

    problem: str | None


class Propose:
    """Shows a proposer the pool as it is when its turn comes, and emits what it writes.

    A proposer that writes nothing is charged no proposal and, on the virtual clock, may take no time. So too many of
    them in a row fail the run. They are counted from events.
    """

    def __init__(self, proposer: Proposer, frontier: Frontier, config: MetaHarnessConfig) -> None:
        self._proposer = proposer
        self._frontier = frontier
        self._config = config
        self._in_vain = 0

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        seen = context.decide(Seen, lambda: self._look(context))
        version = seen.version
        texts = files(context.pool.snapshot(version), context.comments)
        sources = await self._proposer.write(View(texts, self._config.read_chars), context)
        wrote = context.decide(
            Wrote, lambda: Wrote(harnesses=len(sources), in_vain=0 if sources else self._in_vain + 1)
        )
        if wrote.in_vain >= self._config.in_vain:
            raise InputError(
                f"algorithm meta_harness: {wrote.in_vain} proposers in a row wrote no harness; see to it that the "
                "proposer can write, or set algorithm.in_vain higher, and resume the run"
            )
        if not sources:
            raise Discard("no harness written")
        parents = [context.pool[name] for name in seen.best]
        for source in dict.fromkeys(sources[: self._config.candidates]):
            context.begin(Cost(proposals=1))
            candidate = context.propose(harness(source), parents=parents, operator="write", born=version)
            yield Emit(Written(candidate), version=version, derives=candidate.parents)

    def apply_event(self, event: Event) -> None:
        """Count the proposers in a row that wrote nothing."""
        if event.kind == Wrote.kind:
            self._in_vain = Wrote.from_json(event.data).in_vain

    def _look(self, context: StageContext) -> Seen:
        best = self._frontier.best()
        return Seen(version=context.pool.version, best=() if best is None else (best.id,))


@dataclass(frozen=True)
class Evaluation:
    """The stages that run a harness."""

    evaluator: Evaluator
    task: HarnessTask
    config: MetaHarnessConfig

    async def check(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        """Check that a harness can be imported. One that can't goes straight to update."""
        candidate = item.expect(Written).candidate
        source = candidate.artifact[COMPONENT]
        labels = next(iter(self.task.sets.values())).labels

        async def make() -> ImportCheck:
            return ImportCheck(problem=await check(self.evaluator, source, labels, self.config.check_seconds))

        problem = (await context.once(ImportCheck, make)).problem
        if problem is None:
            yield Emit(Checked(candidate), to="benchmark")
        else:
            yield Emit(Invalid(candidate, problem), to="update")

    async def benchmark(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        """Score a harness on all data sets concurrently."""
        checked = item.expect(Checked)
        context.begin(Cost(evaluations=1))
        sets = [each for each in self.task.sets.values() if checked.split == "val" or each.data.test]
        rows = sum(len(each.data.val if checked.split == "val" else each.data.test) for each in sets)
        try:
            with context.reserved(Cost(rollouts=rows)):
                scored = await run_all([partial(self._score, checked, each, context) for each in sets])
        except HarnessError as error:
            if checked.split == "test":
                raise Discard(f"failed on the test split: {error}") from error
            yield Emit(Invalid(checked.candidate, str(error)))
            return
        names = [each.name for each in sets]
        scores = {name: value for one in scored for name, value in one.scores.items()}
        yield Emit(Benchmarked(checked.candidate, scores, _result(names, scored).to_json(), checked.split))

    async def _score(self, checked: Checked, each: LabelledSet, context: StageContext) -> SetScores:
        rows = each.data.val if checked.split == "val" else each.data.test
        key = f"{each.name}/{checked.split}"
        benchmark = Benchmark(checked.candidate, each, self.config, rows, key)
        scores = await benchmark.score(self.evaluator, context)
        context.spend(Cost(rollouts=len(rows)))
        return scores


def _result(names: Sequence[str], scored: Sequence[SetScores]) -> Result:
    sets = list(zip(names, scored, strict=True))
    return Result(
        accuracy={name: fmean(one.scores.values()) for name, one in sets},
        context_chars=fmean(one.context_chars for one in scored),
        mistakes=tuple({"set": name, **mistake} for name, one in sets for mistake in one.mistakes[:_MISTAKES]),
    )


async def update(item: Item[object], context: UpdateContext) -> None:
    """Add a scored harness to the pool, or an invalid one as ``rejected`` with its report. Results on the test splits
    are noted on the harness.
    """
    payload = item.payload
    if isinstance(payload, Invalid):
        context.commit([Add(Result(report=payload.report).on(payload.candidate), "rejected")])
        return
    done = item.expect(Benchmarked)
    result = Result.from_json(done.attributes)
    if done.split == "test":
        found = Result(accuracy=result.accuracy, context_chars=result.context_chars).to_json()
        context.commit([Annotate(done.candidate.id, {"test": found})])
    else:
        context.commit([Add(result.on(done.candidate).scored(done.scores))])
