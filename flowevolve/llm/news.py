"""What happens in the LLM layer and belongs into the log of a run, of which the layer itself knows nothing."""

from __future__ import annotations

from flowevolve.event_kinds import EventBody
from flowevolve.llm.admission import Log


class News:
    """Events to be logged; those from before the log is there are kept for it."""

    def __init__(self) -> None:
        self._early: list[EventBody] = []
        self._log: Log | None = None

    def connect(self, log: Log) -> None:
        """Log what there is and whatever comes."""
        self._log = log
        while self._early:
            log(self._early.pop(0))

    def tell(self, body: EventBody) -> None:
        """Something happened."""
        if self._log is None:
            self._early.append(body)
        else:
            self._log(body)
