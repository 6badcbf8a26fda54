"""The short way to write the stage that commits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

from flowevolve.core.context import UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit
from flowevolve.core.item import Item


def committing(name: str, work: Callable[[Item[object], UpdateContext], Awaitable[None]]) -> CommittingStage:
    """The committing stage of a graph, made of an async function that hands nothing on."""

    async def run(item: Item[object], context: UpdateContext, /) -> AsyncGenerator[Emit]:
        await work(item, context)
        for emission in NO_EMISSIONS:
            yield emission

    return CommittingStage(name, run)
