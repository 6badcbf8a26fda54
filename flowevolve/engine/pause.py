"""Pauses of a run at the request of its caller."""

from __future__ import annotations

from flowevolve._util.tasks import Pulse


class Paused:
    """What is paused: with ``new_flows`` set, no flow is opened; with ``items`` set, no work on an item begins."""

    def __init__(self) -> None:
        self.new_flows = False
        self.items = False
        self._over = Pulse()

    def begin(self, *, items: bool) -> None:
        self.new_flows = True
        self.items = items
        if not items:
            self._over.fire()

    def end(self) -> bool:
        """End the pause, if there is one; returns whether there was."""
        rested = self.new_flows
        self.new_flows = self.items = False
        self._over.fire()
        return rested

    async def wait_for_items(self) -> None:
        """Return once items may be worked on."""
        while self.items:
            await self._over.wait()
