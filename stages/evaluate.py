"""evaluate: score a candidate on the whole validation set, or on a part of it if the rest is not worth running.

With speculation, a candidate that beats the pool on the first part of the validation order is released while the rest
is still being run (FlashEvolve §3.3). With racing, an evaluation that is not worth finishing is stopped.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from statistics import fmean

from flowevolve.core.assessment import Assessment, mean_metrics
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.event_kinds import EvaluationStopped
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item, Released
from flowevolve.core.policies import NoRacing, Race, Racing, Speculation, Standing, ValidationAcceptance
from flowevolve.core.pool import Candidate
from flowevolve.core.task import Rollout, Score
from flowevolve.policies.acceptance import Everything
from flowevolve.stages.payloads import Evaluated, Proposed
from flowevolve.stages.rollouts import Rollouts


@dataclass(frozen=True)
class Evaluate:
    """``example_ids`` are in the order of the score vector; ``order`` returns the ids to run, in the order to run them.

    ``standing`` returns what candidates are measured against. While nothing is confirmed it returns None: then the
    evaluation is finished in any case, and nothing is released early.
    """

    rollouts: Rollouts
    example_ids: Sequence[str]
    order: Callable[[], Sequence[str]]
    standing: Callable[[], Standing | None]
    speculation: Speculation = field(default_factory=Speculation)
    racing: Racing = field(default_factory=NoRacing)
    acceptance: ValidationAcceptance = field(default_factory=Everything)
    parts: int = 1
    """In how many parts, one after the other, an evaluation is run. More than one suits rollouts that can't be
    cancelled: a losing evaluation then ends after a part. The first evaluation, which nothing can stop, is run in one
    part.
    """

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        candidate = item.expect(Proposed).candidate
        context.begin(Cost(evaluations=1))
        order = self.order()
        prefix = order[: self.speculation.quorum(context.stage, len(order))]
        scores: dict[str, float] = {}
        found: dict[str, Score] = {}
        released = False
        async with aclosing(self._run(candidate, order, len(prefix), context)) as rollouts:
            async for rollout in rollouts:
                found[rollout.example_id] = rollout.score
                scores[rollout.example_id] = rollout.score.value
                standing = self.standing()
                if standing is None or len(scores) == len(order):
                    continue
                if not released and len(scores) >= len(prefix) and all(name in scores for name in prefix):
                    released = True
                    if beats(scores, standing.incumbent, prefix):
                        yield Emit(Released(candidate.scored({name: scores[name] for name in prefix})))
                if len(scores) % self._size(order) == 0 or self.parts == 1:
                    race = Race(order, len(prefix), scores, standing, self.acceptance)
                    self._stop_if_hopeless(candidate, race, context)
        yield Emit(Evaluated(_scored(candidate, {name: found[name] for name in self.example_ids if name in found})))

    async def _run(
        self, candidate: Candidate, order: Sequence[str], prefix: int, context: StageContext
    ) -> AsyncGenerator[Rollout]:
        """Yield rollouts as they end, part by part. Budget for the later parts is kept reserved."""
        waiting = len(order)
        for part, urgent in self._parts(order, prefix):
            waiting -= len(part)
            with context.reserved(Cost(rollouts=waiting)):
                async with aclosing(self.rollouts.as_completed(candidate, part, "val", context, urgent)) as rollouts:
                    async for _, rollout in rollouts:
                        yield rollout

    def _parts(self, order: Sequence[str], prefix: int) -> Sequence[tuple[Sequence[str], int]]:
        """The examples of each part, and how many of them, counted from the first, are urgent."""
        if self.speculation.hold:
            return [(order[:prefix], prefix), (order[prefix:], 0)]
        if self.parts == 1 or self.standing() is None:
            return [(order, prefix)]
        size = self._size(order)
        return [(order[start : start + size], size) for start in range(0, len(order), size)]

    def _size(self, order: Sequence[str]) -> int:
        """How many examples each part has; the last one may have fewer."""
        return -(-len(order) // self.parts)

    def _stop_if_hopeless(self, candidate: Candidate, race: Race, context: StageContext) -> None:
        reason = self.racing.hopeless(race)
        if reason is None:
            return
        saved = len(race.order) - len(race.scores)
        context.save(saved)
        context.log(EvaluationStopped(context.stage, context.item_id, candidate.id, reason, len(race.scores), saved))
        raise Discard(f"stopped: {reason}")


def _scored(candidate: Candidate, found: Mapping[str, Score]) -> Candidate:
    """The candidate with its scores, and with other metrics if any were measured."""
    scored = candidate.scored({name: score.value for name, score in found.items()})
    measured = {name: score.metrics for name, score in found.items() if score.metrics}
    if not measured:
        return scored
    return Assessment(metrics=mean_metrics(list(found.values())), metrics_by_example=measured).on(scored)


def beats(scores: Mapping[str, float], incumbent: Mapping[str, float], prefix: Sequence[str]) -> bool:
    """Whether the mean over these examples is higher than the incumbent's on the same ones."""
    return fmean(scores[name] for name in prefix) > fmean(incumbent[name] for name in prefix)
