"""CSE's look into what was learnt with other tasks."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from flowevolve.algorithms.cse.payloads import Brief
from flowevolve.context import StageContext
from flowevolve.item import Item
from flowevolve.stage import Emit
from flowevolve.stages.coding import as_shown
from flowevolve.stages.recall import Recall, shown_entries


@dataclass(frozen=True)
class RecallFor:
    """Queries are made for the first parent, with what this run has learnt."""

    recall: Recall

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        brief = item.expect(Brief)
        entries = await self.recall.recall(as_shown(context.pool[brief.parents[0]]), brief.local, context)
        yield Emit(replace(brief, recalled=shown_entries(entries)))
