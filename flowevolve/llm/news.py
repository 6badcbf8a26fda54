"""What happens in the LLM layer and belongs into the log of a run, of which the layer itself knows nothing."""

from __future__ import annotations

from collections.abc import Mapping

from flowevolve.llm.admission import Log
from flowevolve.llm.types import JSON


class News:
    """Events to be logged; those from before the log is there are kept for it."""

    def __init__(self) -> None:
        self._early: list[tuple[str, Mapping[str, JSON]]] = []
        self._log: Log | None = None

    def connect(self, log: Log) -> None:
        """Log what there is and whatever comes."""
        self._log = log
        while self._early:
            log(*self._early.pop(0))

    def tell(self, kind: str, data: Mapping[str, JSON]) -> None:
        """Something happened."""
        if self._log is None:
            self._early.append((kind, data))
        else:
            self._log(kind, data)
