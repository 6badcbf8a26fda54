"""Counts failed rollouts. Each has the worst score, which says nothing about its candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowevolve.core.events import Event

FAILED = "rollout.failed"
"""The kind of the events that report a rollout that got no answer, or on which the task's code failed."""


@dataclass(frozen=True, slots=True)
class FailedRollouts:
    """How many rollouts failed; ``last`` says why the last of them did."""

    count: int = 0
    last: str = ""

    @classmethod
    def read(cls, table: Mapping[str, Any] | None) -> FailedRollouts:
        """Read this from a result. Results of older versions have no such table, which counts as no failures."""
        return cls() if table is None else cls(table["count"], table["last"])

    def said(self, rollouts: int) -> str:
        """How many of this many rollouts failed, in words; empty if none did."""
        if not self.count:
            return ""
        failed = (
            f"{self.count} of {rollouts} rollouts failed and {'has' if self.count == 1 else 'have'} the worst score"
        )
        return f"{failed}; the last: {' '.join(self.last.split())}"


class FailureCounter:
    """Counts the failed rollouts of a run, as an event sink. Work that is repeated after an interruption does not log a
    failure a second time, so each is counted once.
    """

    def __init__(self) -> None:
        self.found = FailedRollouts()

    def event(self, event: Event) -> None:
        if event.kind == FAILED:
            self.found = FailedRollouts(self.found.count + 1, str(event.data["reason"]))
