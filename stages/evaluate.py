"""evaluate: score a candidate on the whole validation set."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from flowevolve.context import StageContext
from flowevolve.item import Item
from flowevolve.stage import Emit
from flowevolve.stages.payloads import Evaluated, Proposed
from flowevolve.stages.rollouts import Rollouts


@dataclass(frozen=True)
class Evaluate:
    """``example_ids`` in the order the score vector has them."""

    rollouts: Rollouts
    example_ids: Sequence[str]

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        candidate = item.expect(Proposed).candidate
        rollouts = await self.rollouts.run(candidate, self.example_ids, "val", context)
        scores = {rollout.example_id: rollout.score.value for rollout in rollouts}
        yield Emit(Evaluated(candidate.scored(scores)))
