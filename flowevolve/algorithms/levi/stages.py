"""LEVI's stages between choosing and committing: write and evaluate."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import cast

from flowevolve.algorithms.levi.describing import Describe
from flowevolve.algorithms.levi.payloads import Brief, Finalist, Unwritten
from flowevolve.algorithms.levi.progress import COST, in_full
from flowevolve.algorithms.levi.writing import Writer
from flowevolve.archives.map_elites import DESCRIPTOR, MapElites
from flowevolve.budget import Cost
from flowevolve.context import StageContext
from flowevolve.item import Item
from flowevolve.llm.types import JSON, LLMError
from flowevolve.pool import Candidate
from flowevolve.stage import Discard, Emit
from flowevolve.stages.assess import Assess, Level
from flowevolve.stages.payloads import Written

_SPENT = "init has had its share of the budget"


@dataclass(frozen=True)
class Write:
    """Has candidates written as their briefs say. Of a seed that came to nothing update is told, to try it again."""

    writer: Writer
    init_share: float
    expected: Callable[[], Cost]
    """What is known beforehand of what a candidate costs: nothing of tokens and dollars."""

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        brief = item.expect(Brief)
        if brief.opening and not self._affordable(context):
            if brief.operator != "diverse":
                raise Discard(_SPENT)
            yield Emit(Unwritten(_SPENT, last=True), to="update")
            return
        shown = [context.pool[name] for name in brief.shown]
        try:
            candidate = await self.writer.write(brief, shown, item.version, context)
        except (Discard, LLMError) as error:
            if brief.operator != "diverse":
                raise
            emission = Emit(Unwritten(str(error)), to="update")
        else:
            emission = Emit(Written(candidate), to="evaluate", derives=candidate.parents)
        yield emission

    def _affordable(self, context: StageContext) -> bool:
        """What tokens, dollars and tries in vain come to, nobody knew when seeds and variants were planned."""
        found = context.decide("levi.afforded", lambda: {"share": context.share(self.expected())})
        return cast(float, found["share"]) <= self.init_share


@dataclass(frozen=True)
class Evaluate:
    """``narrow`` runs what candidates are scored on now, ``full`` all there is, for those that become finalists."""

    narrow: Assess
    full: Assess
    describe: Describe
    costs: bool
    """Whether candidates are to say what it cost."""

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if isinstance(item.payload, Finalist):
            known = in_full(item.payload.candidate)
            if known is not None:
                yield Emit(Finalist(known, scored=True))
                return
            scored = await self.full.assess(item.payload.candidate, context)
            if scored.failure is not None:
                raise Discard(f"failed on all examples: {scored.failure}")
            yield Emit(Finalist(scored.candidate, scored=True))
            return
        assessed = await self.narrow.assess(item.expect(Written).candidate, context)
        candidate = described(assessed.candidate, self.describe)
        if self.costs:
            candidate = replace(candidate, attributes={**candidate.attributes, COST: context.cost.to_json()})
        yield Emit(replace(assessed, candidate=candidate))


def described(candidate: Candidate, describe: Describe) -> Candidate:
    """With its descriptor."""
    metrics = cast("dict[str, float]", candidate.attributes["metrics"])
    found: JSON = {**describe(candidate.artifact, candidate.scores, metrics)}
    return replace(candidate, attributes={**candidate.attributes, DESCRIPTOR: found})


@dataclass(frozen=True)
class Cascade:
    """The first ``count`` cases, on which a candidate has to come near the best one, once the archive is fitted."""

    archive: MapElites
    cases: Callable[[], Sequence[str]]
    count: int
    fraction: float

    def __call__(self) -> Sequence[Level]:
        best, cases = self.archive.best(), tuple(self.cases())
        if self.archive.space is None or best is None or not 0 < self.count < len(cases):
            return ()
        first = cases[: self.count]
        reference = fmean(best.scores[case] for case in first)
        return (Level(first, bar(reference, self.fraction)),)


def bar(reference: float, fraction: float) -> float:
    """What is that share as good as the reference: less by the rest of its size, so that losses have one, too."""
    return reference - (1 - fraction) * abs(reference)
