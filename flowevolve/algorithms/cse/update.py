"""CSE's committing stage: a program and what it taught enter in one commit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from flowevolve.archives.memory import Memory
from flowevolve.context import UpdateContext
from flowevolve.item import Item
from flowevolve.pool import Add
from flowevolve.stage import Emit
from flowevolve.stages.payloads import Assessed
from flowevolve.stages.remember import Compressed, Reflected, learn, shorten


@dataclass(frozen=True)
class Update:
    """A program that failed enters as ``rejected``, so that what it taught stands beside it."""

    memory: Memory

    async def __call__(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        if isinstance(item.payload, Compressed):
            context.commit([shorten(item.payload, self.memory)])
            return
        for emission in self._enter(item, context):
            yield emission

    def _enter(self, item: Item[object], context: UpdateContext) -> Iterator[Emit]:
        payload = item.payload
        learned = payload.learned if isinstance(payload, Reflected) else None
        assessed = payload if isinstance(payload, Reflected) else item.expect(Assessed)
        learning = learn(learned, self.memory, context)
        added = Add(assessed.candidate, "confirmed" if assessed.failure is None else "rejected")
        context.commit([added, *learning.changes])
        yield from learning.emissions
