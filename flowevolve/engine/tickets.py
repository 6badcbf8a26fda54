"""Which flow is opened next: an ordinary one, or one that a trigger asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from flowevolve.core.graph import Trigger
from flowevolve.core.item import Ticket


class TicketQueue:
    """Lets ordinary and triggered flows take turns, so that neither starves. A trigger has at most one flow waiting.

    Triggers count from the end of init until no more flows are opened. Once the algorithm is out of ordinary work, a
    trigger counts only if an ordinary flow set it off: otherwise triggered flows that commit could keep a run going for
    ever.
    """

    def __init__(self) -> None:
        self.is_open = False
        """Whether init is over and flows, ordinary and triggered, are opened. Triggers count only then."""
        self.out_of_work = False
        """Whether the algorithm has no more ordinary work."""
        self._fired: dict[str, Trigger] = {}
        self._after_trigger = False
        self._ordinals: Counter[str | None] = Counter()
        self._holding = False
        self.changes = 0
        """How many commits and ends of flows there were so far."""

    def fire(self, trigger: Trigger, *, by_ordinary_flow: bool) -> bool:
        """Have a flow opened for a trigger; returns False if the trigger does not count now or already waits for a
        flow.
        """
        if not self.is_open or trigger.name in self._fired or (self.out_of_work and not by_ordinary_flow):
            return False
        self._fired[trigger.name] = trigger
        return True

    @property
    def ready(self) -> bool:
        """Whether there is a flow to open."""
        return bool(self._fired) or self._ordinary

    @property
    def _ordinary(self) -> bool:
        return not self.out_of_work and not self._holding

    def next(self) -> Trigger | None:
        """The trigger whose flow is to be opened next, or None for an ordinary flow. Ask only when one is `ready`."""
        if self._fired and not (self._after_trigger and self._ordinary):
            return next(iter(self._fired.values()))
        return None

    def ticket(self, trigger: Trigger | None) -> Ticket:
        """The ticket of the flow that is opened now, for this trigger or, with None, an ordinary one."""
        self._after_trigger = trigger is not None
        if trigger is None:
            return self.number(None)
        del self._fired[trigger.name]
        return self.number(trigger.name)

    def number(self, name: str | None) -> Ticket:
        """The next ticket of the trigger of this name or, with None, the next ordinary one."""
        self._ordinals[name] += 1
        return Ticket(name, self._ordinals[name] - 1)

    def restore(self, ordinals: Mapping[str | None, int], fired: Sequence[Trigger]) -> None:
        """Take over from an interrupted run how many tickets each trigger had received (ordinary tickets under None),
        and which triggers were waiting for a flow.
        """
        self._ordinals.update(ordinals)
        self._fired = {trigger.name: trigger for trigger in fired}

    def drop(self, trigger: Trigger) -> None:
        """Open no flow for this trigger this time, because the budget has no room for one."""
        del self._fired[trigger.name]

    def change(self) -> None:
        """Note an event after which an entry stage that had no work may have some."""
        self.changes += 1
        self._holding = False

    def hold(self, since: int) -> None:
        """Open no ordinary flow before the next change: after ``since`` `changes` the entry stage had nothing to do."""
        self._holding = self._holding or since == self.changes
