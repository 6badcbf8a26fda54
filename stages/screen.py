"""screen: run a proposal on the minibatch it was made from and let it pass only if it beats what was there before."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

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
        rollouts = await self.rollouts.run(proposed.candidate, proposed.batch, proposed.split, context)
        scores = [rollout.score.value for rollout in rollouts]
        acceptance = self.acceptance if proposed.split == "train" else ImprovementOrEqual()
        accepted = acceptance.accepts(scores, proposed.baseline)
        context.log(
            "candidate.screened",
            candidate=proposed.candidate.id,
            accepted=accepted,
            scores=list(scores),
            baseline=list(proposed.baseline),
        )
        if not accepted:
            raise Discard("not better on its minibatch")
        yield Emit(proposed)
