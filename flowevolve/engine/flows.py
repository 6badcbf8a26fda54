"""Open flows and the items that live in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from flowevolve.core.budget import NOTHING, Cost
from flowevolve.core.item import Item, Ticket, carried
from flowevolve.core.item_ids import ItemId, ticket_id
from flowevolve.engine.ledger import Ledger


@dataclass(slots=True)
class _Open:
    """A flow that has not ended."""

    ageless: bool
    triggered: bool
    items: int = 0


class Flows:
    """All flows that have not ended, with their items. A part of the budget is reserved for each open flow."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._open: dict[int, _Open] = {}
        self._live: dict[ItemId, tuple[str, Item[object]]] = {}
        self._carriers: Counter[str] = Counter()
        self.opened = 0
        """How many flows were opened so far. This is also the number of the next one."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def items(self) -> int:
        """How many live items there are."""
        return len(self._live)

    def abandon(self) -> list[tuple[str, Item[object]]]:
        """Give up all flows; returns the items that had not ended, each with its stage's name, oldest first."""
        items = list(self._live.values())
        for flow in self._open:
            self._ledger.close(flow)
        self._live.clear()
        self._open.clear()
        self._carriers.clear()
        return items

    def open(
        self, stage: str, ticket: Ticket, estimate: Cost, *, version: int, now: float, ageless: bool
    ) -> Item[Ticket]:
        """Start a flow with a ticket for ``stage``. ``ageless``: its items never get stale."""
        flow = self.opened
        self.opened += 1
        self.restore(flow, ageless=ageless, triggered=ticket.trigger is not None, estimate=estimate)
        item = Item(ticket_id(flow), flow, ticket, version, (), now)
        self.enter(stage, item)
        return item

    def number_from(self, flow: int) -> None:
        """Give the next flow this number, unless this number has been passed already."""
        self.opened = max(self.opened, flow)

    def restore(self, flow: int, *, ageless: bool, triggered: bool, estimate: Cost, spent: Cost = NOTHING) -> None:
        """Count a flow as open, for example one of a resumed run that had ``spent`` this much. Its items `enter`
        afterwards.
        """
        self._open[flow] = _Open(ageless, triggered)
        self._ledger.reserve(flow, estimate, usual=not ageless, spent=spent)

    def is_ageless(self, item: Item[object]) -> bool:
        """Whether an item never gets stale: one from outside, or one of init or finish, which must not lose any."""
        return item.flow in self._open and self._open[item.flow].ageless

    def is_triggered(self, flow: int) -> bool:
        """Whether a trigger asked for this flow."""
        return flow in self._open and self._open[flow].triggered

    def carries(self, candidate_id: str) -> bool:
        """Whether any live item is about this candidate."""
        return candidate_id in self._carriers

    def count_at(self, stages: AbstractSet[str]) -> int:
        """How many live items are waiting or being worked on at these stages."""
        return sum(stage in stages for stage, _ in self._live.values())

    def enter(self, stage: str, item: Item[object]) -> None:
        """Add a new item of an open flow."""
        self._open[item.flow].items += 1
        self._live[item.id] = (stage, item)
        self._carriers.update(candidate.id for candidate in carried(item))

    def leave(self, item: Item[object]) -> bool:
        """Remove an item that has ended; returns whether this ended its flow."""
        del self._live[item.id]
        for candidate in carried(item):
            self._carriers[candidate.id] -= 1
            if not self._carriers[candidate.id]:
                del self._carriers[candidate.id]
        flow = self._open[item.flow]
        flow.items -= 1
        if flow.items:
            return False
        del self._open[item.flow]
        self._ledger.close(item.flow)
        return True
