"""How many rollouts have failed: such a one has the worst score, which says nothing of its candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowevolve.core.events import Event

FAILED = "rollout.failed"
"""The kind of the events that tell of a rollout that got no answer, or on which the task's code failed."""


@dataclass(frozen=True, slots=True)
class FailedRollouts:
    """So many rollouts failed; ``last`` says why the last of them did."""

    count: int = 0
    last: str = ""

    @classmethod
    def read(cls, table: Mapping[str, Any] | None) -> FailedRollouts:
        """Nothing of results of older versions."""
        return cls() if table is None else cls(table["count"], table["last"])

    def said(self, rollouts: int) -> str:
        """In words, of so many rollouts; empty if none failed."""
        if not self.count:
            return ""
        failed = (
            f"{self.count} of {rollouts} rollouts failed and {'has' if self.count == 1 else 'have'} the worst score"
        )
        return f"{failed}; the last: {' '.join(self.last.split())}"


class FailureCounter:
    """Counts the failed rollouts of a run, as an event sink. What an interrupted work had written is told once."""

    def __init__(self) -> None:
        self.found = FailedRollouts()

    def event(self, event: Event) -> None:
        if event.kind == FAILED:
            self.found = FailedRollouts(self.found.count + 1, str(event.data["reason"]))
