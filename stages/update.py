"""update: the one stage that changes the pool."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from flowevolve.context import StageContext, UpdateContext
from flowevolve.errors import EngineError
from flowevolve.item import Item
from flowevolve.pool import Add
from flowevolve.stage import NO_EMISSIONS, Emit
from flowevolve.stages.payloads import Evaluated


class Update:
    """Adds every evaluated candidate: whether it matters is the archive's judgement."""

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if not isinstance(context, UpdateContext):
            raise EngineError("the update stage must be the committing stage of its graph")
        context.commit([Add(item.expect(Evaluated).candidate)])
        for emission in NO_EMISSIONS:
            yield emission
