"""screen: run a proposal on the minibatch it was made from and let it pass only if it beats what was there before."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from functools import partial

from flowevolve.concurrency import run_all
from flowevolve.context import StageContext
from flowevolve.item import Item
from flowevolve.policies.acceptance import Acceptance, ImprovementOrEqual
from flowevolve.stage import Discard, Emit
from flowevolve.stages.payloads import Proposed
from flowevolve.stages.rollouts import Rollouts


@dataclass(frozen=True)
class Screen:
    """``acceptance`` judges proposals on training examples; a merged candidate, screened on validation examples, need
    only be as good as the better of its parents.
    """

    rollouts: Rollouts
    acceptance: Acceptance

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        proposed = item.expect(Proposed)
        scores, baseline = await self._scores(proposed, context)
        acceptance = self.acceptance if proposed.split == "train" else ImprovementOrEqual()
        accepted = acceptance.accepts(scores, baseline)
        context.log(
            "candidate.screened",
            candidate=proposed.candidate.id,
            accepted=accepted,
            scores=list(scores),
            baseline=list(baseline),
        )
        if not accepted:
            raise Discard("not better on its minibatch")
        yield Emit(replace(proposed, baseline=baseline))

    async def _scores(self, proposed: Proposed, context: StageContext) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Of the candidate and of what it has to beat, on the same examples."""
        wanted = [proposed.candidate]
        if proposed.baseline is None:
            wanted.append(context.pool[proposed.candidate.parents[0]])
        jobs = [partial(self.rollouts.run, each, proposed.batch, proposed.split, context) for each in wanted]
        scores = [tuple(rollout.score.value for rollout in rollouts) for rollouts in await run_all(jobs)]
        return scores[0], scores[-1] if proposed.baseline is None else proposed.baseline
