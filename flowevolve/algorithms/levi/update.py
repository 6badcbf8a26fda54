"""LEVI's committing stage, which says what comes next, too."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from flowevolve.algorithms.levi.config import LEVIConfig
from flowevolve.algorithms.levi.payloads import Advice, Brief, Finalist, Operator, Unwritten
from flowevolve.algorithms.levi.progress import ADVICE, FULL, PROXY, UNWRITTEN, Progress
from flowevolve.algorithms.levi.proxy import select_proxy
from flowevolve.archives.map_elites import MapElites
from flowevolve.clock import in_thread
from flowevolve.context import UpdateContext
from flowevolve.item import Item
from flowevolve.llm.types import JSON
from flowevolve.pool import Add, Annotate, Candidate, Change, Note
from flowevolve.stage import Emit
from flowevolve.stages.payloads import Assessed


@dataclass(frozen=True)
class Update:
    """A candidate enters as confirmed if it is the elite of its cell, else as rejected: every evaluation is a commit.

    Emits the next diverse seed, and variants of seeds and of shifts. When the last seed is there it chooses the proxy
    benchmark; what was scored on all examples counts by these from then on. ``cases`` are all there are.
    """

    archive: MapElites
    progress: Progress
    config: LEVIConfig
    cases: Sequence[str]

    async def __call__(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        match item.payload:
            case Advice(text=text):
                context.commit([Note(ADVICE, {"text": text})])
            case Finalist(candidate=candidate):
                context.commit([Annotate(candidate.id, {FULL: dict(candidate.scores)})])
            case Unwritten(reason=reason, last=last):
                context.commit([Note(UNWRITTEN, {"reason": reason, "last": last})])
                for emission in await self._open(None, context):
                    yield emission
            case _:
                candidate, accepted = self._enter(item.expect(Assessed), context)
                for emission in await self._follow(candidate, accepted, context):
                    yield emission

    def _enter(self, assessed: Assessed, context: UpdateContext) -> tuple[Candidate, bool]:
        candidate, works = assessed.candidate, assessed.failure is None
        judged = context.decide(
            "levi.judged",
            lambda: {"candidate": candidate.id, "accepted": works and self.archive.admits(candidate)},
        )
        context.commit([Add(candidate, "confirmed" if judged["accepted"] else "rejected")])
        return candidate, bool(judged["accepted"])

    async def _follow(self, candidate: Candidate, accepted: bool, context: UpdateContext) -> list[Emit]:
        if candidate.operator in ("seed", "diverse"):  # of which all are accepted that work: there are no cells yet
            return await self._open(candidate if accepted else None, context)
        if candidate.operator == "shift" and accepted:
            return [_brief("variant", [candidate.id], context)] * self.config.shift_variants
        return []

    async def _open(self, seed: Candidate | None, context: UpdateContext) -> list[Emit]:
        """What comes after a seed, or a try at one: its variants, unless they wait for the proxy, and the next seed.

        In the place of seeds that were tried in vain the task's own has variants.
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

        async def make() -> Mapping[str, JSON]:
            chosen: list[JSON] = [*await in_thread(select_proxy, matrix, self.config.proxy)]
            return {"columns": chosen}

        columns = cast("list[int]", (await context.once("levi.proxy", make))["columns"])
        examples = [self.cases[column] for column in sorted(columns)]
        context.commit([Note(PROXY, {"examples": list(examples)}), *(self._rebased(each, examples) for each in known)])

    def _rebased(self, candidate: Candidate, examples: Sequence[str]) -> Change:
        """What a candidate is worth on the proxy benchmark."""
        scored = candidate.scored({case: candidate.scores[case] for case in examples})
        return Annotate(candidate.id, {}, scored.scores)


def _brief(operator: Operator, shown: Sequence[str], context: UpdateContext, *, opening: bool = False) -> Emit:
    names = tuple(shown)
    return Emit(Brief(operator, names, opening=opening), to="write", version=context.pool.version, derives=names)
