"""CSE's look into what was learnt with other tasks."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from flowevolve.algorithms.cse.payloads import Brief, Planned
from flowevolve.context import StageContext
from flowevolve.item import Item
from flowevolve.programs.prompts import ShownProgram
from flowevolve.stage import Emit
from flowevolve.stages.coding import as_shown
from flowevolve.stages.recall import Recall, shown_entries

PLAN = "plan"
"""The label of a program that is told by its plan."""


@dataclass(frozen=True)
class RecallFor:
    """Queries are made for the first parent, with what this run has learnt; for a program to a plan by the plan, or,
    where there is none, by the form. Such programs are written before a run has learnt anything.
    """

    recall: Recall

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if isinstance(item.payload, Planned):
            planned = item.payload
            told = ShownProgram({PLAN: planned.plan} if planned.plan else planned.form.artifact, None)
            entries = await self.recall.recall(told, "", context)
            yield Emit(replace(planned, recalled=shown_entries(entries)), to="write")
            return
        brief = item.expect(Brief)
        entries = await self.recall.recall(as_shown(context.pool[brief.parents[0]]), brief.local, context)
        yield Emit(replace(brief, recalled=shown_entries(entries)))
