"""The short way to write a stage that commits and hands nothing on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable

from flowevolve.context import StageContext, UpdateContext
from flowevolve.errors import EngineError
from flowevolve.item import Item
from flowevolve.stage import NO_EMISSIONS, Emit, StageFunction


def committing(work: Callable[[Item[object], UpdateContext], Awaitable[None]]) -> StageFunction:
    """A stage function, for the committing stage of a graph, of an async function that returns nothing."""

    async def run(item: Item[object], context: StageContext, /) -> AsyncGenerator[Emit]:
        if not isinstance(context, UpdateContext):
            raise EngineError(f"stage {context.stage!r} commits: say so in the graph, commits=True")
        await work(item, context)
        for emission in NO_EMISSIONS:
            yield emission

    return run
