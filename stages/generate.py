"""generate: run the selected parent on its minibatch, with traces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from flowevolve.core.context import StageContext
from flowevolve.core.discard_reasons import PERFECT
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.policies import Speculation
from flowevolve.core.task import Rollout
from flowevolve.stages.payloads import Rolled, Selected
from flowevolve.stages.rollouts import Rollouts


@dataclass(frozen=True)
class Generate:
    """Runs a parent on its minibatch. With ``skip_perfect``, an item ends here if everything passed, as there is
    nothing to learn from it.

    With speculation, samples are handed on as soon as enough are in. Those that are still running follow in an item of
    their own, so one selection leads to several proposals, each from a part of the minibatch (FlashEvolve §3.3).
    """

    rollouts: Rollouts
    skip_perfect: bool = True
    speculation: Speculation = field(default_factory=Speculation)

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        selected = item.expect(Selected)
        quorum = self.speculation.quorum(context.stage, len(selected.batch))
        waiting: dict[int, Rollout] = {}
        taught = 0
        async with aclosing(self.rollouts.as_completed(selected.parent, selected.batch, "train", context)) as rollouts:
            async for index, rollout in rollouts:
                waiting[index] = rollout
                if len(waiting) == quorum and (part := self._part(selected, waiting)) is not None:
                    taught += 1
                    waiting = {}
                    yield Emit(part)
        rest = self._part(selected, waiting)
        if rest is not None:
            yield Emit(rest)
        elif not taught:
            raise Discard(PERFECT)

    def _part(self, selected: Selected, rollouts: Mapping[int, Rollout]) -> Rolled | None:
        """These samples of the minibatch, in its order; None if there is nothing to learn from them."""
        if not rollouts or (self.skip_perfect and all(rollout.score.passed for rollout in rollouts.values())):
            return None
        indices = sorted(rollouts)
        batch = tuple(selected.batch[index] for index in indices)
        return Rolled(replace(selected, batch=batch), tuple(rollouts[index] for index in indices))
