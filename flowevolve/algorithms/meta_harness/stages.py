"""Meta-Harness's stages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import cast

from flowevolve.algorithms.meta_harness.config import MetaHarnessConfig
from flowevolve.algorithms.meta_harness.evaluator import Benchmark, Evaluator, HarnessError, SetScores, check
from flowevolve.algorithms.meta_harness.frontier import ACCURACY, CONTEXT, Frontier
from flowevolve.algorithms.meta_harness.payloads import Benchmarked, Checked, Invalid
from flowevolve.algorithms.meta_harness.proposer import Proposer
from flowevolve.algorithms.meta_harness.view import View, files
from flowevolve.budget import Cost
from flowevolve.concurrency import run_all
from flowevolve.context import StageContext, UpdateContext
from flowevolve.errors import InputError
from flowevolve.events import Event
from flowevolve.item import Item
from flowevolve.llm.types import JSON
from flowevolve.pool import Add, Annotate, Candidate
from flowevolve.stage import Discard, Emit
from flowevolve.stages.payloads import Written
from flowevolve.tasks.harness import COMPONENT, HarnessTask, LabelledSet, harness

WROTE = "harness.wrote"
"""The kind of event that says how many harnesses a proposer wrote."""
_MISTAKES = 8
"""Kept per data set."""


class Propose:
    """Shows a proposer the pool as it is when its turn comes; emits what it writes.

    Proposers that write nothing cost no proposal, and on the virtual clock maybe no time: so many in a row are a fault.
    The count is rebuilt from events.
    """

    def __init__(self, proposer: Proposer, frontier: Frontier, config: MetaHarnessConfig) -> None:
        self._proposer = proposer
        self._frontier = frontier
        self._config = config
        self._in_vain = 0

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        seen = context.decide("harness.view", lambda: self._look(context))
        version = cast(int, seen["version"])
        texts = files(context.pool.snapshot(version))
        sources = await self._proposer.write(View(texts, self._config.read_chars), context)
        wrote = context.decide(WROTE, lambda: self._counted(len(sources)))
        if cast(int, wrote["in_vain"]) >= self._config.in_vain:
            raise InputError(
                f"algorithm meta_harness: {wrote['in_vain']} proposers in a row wrote no harness; see to it that the "
                "proposer can write, then resume the run, or set algorithm.in_vain higher"
            )
        if not sources:
            raise Discard("no harness written")
        parents = [context.pool[str(name)] for name in cast("list[str]", seen["best"])]
        for source in dict.fromkeys(sources[: self._config.candidates]):
            context.spend(Cost(proposals=1))
            candidate = context.propose(harness(source), parents=parents, operator="write", born=version)
            yield Emit(Written(candidate), version=version, derives=candidate.parents)

    def recall(self, event: Event) -> None:
        """Count what was written before the run was interrupted."""
        if event.kind == WROTE:
            self._in_vain = cast(int, event.data["in_vain"])

    def _counted(self, harnesses: int) -> Mapping[str, JSON]:
        self._in_vain = 0 if harnesses else self._in_vain + 1
        return {"harnesses": harnesses, "in_vain": self._in_vain}

    def _look(self, context: StageContext) -> Mapping[str, JSON]:
        best = self._frontier.best()
        return {"version": context.pool.version, "best": [] if best is None else [best.id]}


@dataclass(frozen=True)
class Check:
    """The import check; what fails goes straight to update."""

    evaluator: Evaluator
    task: HarnessTask
    config: MetaHarnessConfig

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        candidate = item.expect(Written).candidate
        source = candidate.artifact[COMPONENT]
        labels = next(iter(self.task.sets.values())).labels

        async def make() -> Mapping[str, JSON]:
            return {"problem": await check(self.evaluator, source, labels, self.config.check_seconds)}

        problem = (await context.once("harness.checked", make))["problem"]
        if problem is None:
            yield Emit(Checked(candidate), to="benchmark")
        else:
            yield Emit(Invalid(candidate, str(problem)), to="update")


@dataclass(frozen=True)
class Score:
    """All data sets side by side."""

    evaluator: Evaluator
    task: HarnessTask
    config: MetaHarnessConfig

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        checked = item.expect(Checked)
        context.spend(Cost(evaluations=1))
        sets = [each for each in self.task.sets.values() if checked.split == "val" or each.data.test]
        try:
            scored = await run_all([partial(self._score, checked, each, context) for each in sets])
        except HarnessError as error:
            if checked.split == "test":
                raise Discard(f"failed on the test split: {error}") from error
            yield Emit(Invalid(checked.candidate, str(error)))
            return
        names = [each.name for each in sets]
        scores = {name: value for one in scored for name, value in one.scores.items()}
        yield Emit(Benchmarked(checked.candidate, scores, _attributes(names, scored), checked.split))

    async def _score(self, checked: Checked, each: LabelledSet, context: StageContext) -> SetScores:
        rows = each.data.val if checked.split == "val" else each.data.test
        key = f"{each.name}/{checked.split}"
        benchmark = Benchmark(checked.candidate, each, self.config, rows, key)
        scores = await benchmark.score(self.evaluator, context)
        context.spend(Cost(rollouts=len(rows)))
        return scores


def _attributes(names: Sequence[str], scored: Sequence[SetScores]) -> dict[str, JSON]:
    return {
        ACCURACY: {name: fmean(one.scores.values()) for name, one in zip(names, scored, strict=True)},
        CONTEXT: fmean(one.context_chars for one in scored),
        "mistakes": [
            {"set": name, **mistake}
            for name, one in zip(names, scored, strict=True)
            for mistake in one.mistakes[:_MISTAKES]
        ],
    }


async def update(item: Item[object], context: UpdateContext) -> None:
    """Every scored harness enters the pool; invalid ones do as ``rejected``, with their report."""
    payload = item.payload
    if isinstance(payload, Invalid):
        context.commit([Add(_with(payload.candidate, {"report": payload.report}), "rejected")])
        return
    done = item.expect(Benchmarked)
    if done.split == "test":
        found = {"accuracy": done.attributes[ACCURACY], CONTEXT: done.attributes[CONTEXT]}
        context.commit([Annotate(done.candidate.id, {"test": found})])
    else:
        context.commit([Add(_with(done.candidate, done.attributes).scored(done.scores))])


def _with(candidate: Candidate, attributes: Mapping[str, JSON]) -> Candidate:
    return replace(candidate, attributes={**candidate.attributes, **attributes})
