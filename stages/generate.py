"""generate: run the selected parent on its minibatch, with traces."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from flowevolve.context import StageContext
from flowevolve.item import Item
from flowevolve.stage import Discard, Emit
from flowevolve.stages.payloads import Rolled, Selected
from flowevolve.stages.rollouts import Rollouts


@dataclass(frozen=True)
class Generate:
    """``skip_perfect``: a minibatch on which everything passed has nothing to teach and ends here."""

    rollouts: Rollouts
    skip_perfect: bool = True

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        selected = item.expect(Selected)
        rollouts = await self.rollouts.run(selected.parent, selected.batch, "train", context)
        if self.skip_perfect and all(rollout.score.passed for rollout in rollouts):
            raise Discard("perfect minibatch")
        yield Emit(Rolled(selected, rollouts))
