"""How much is worked on together: items that a stage gathers, flows that a lockstep step opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Batch:
    """What was worked on together, how much of it, and how long that took."""

    size: int
    seconds: float


class BatchSize(Protocol):
    """Asked before each gathering, or step. A function of what it is told, which a run that goes on is told again."""

    def next(self, past: Sequence[Batch]) -> int:
        """How much to work on together next, at least 1. ``past`` holds the last `PAST` batches, oldest first."""
        ...


PAST = 256
