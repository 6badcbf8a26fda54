"""A run that rests for a while because its caller wants it to."""

from __future__ import annotations

from flowevolve._util.tasks import Pulse


class Pause:
    """What rests: ``new_flows`` that would be opened, and with ``items`` work on anything that has not been begun."""

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
        """Returns whether anything rested."""
        rested = self.new_flows
        self.new_flows = self.items = False
        self._over.fire()
        return rested

    async def wait_for_items(self) -> None:
        """Return once items may be worked on."""
        while self.items:
            await self._over.wait()
