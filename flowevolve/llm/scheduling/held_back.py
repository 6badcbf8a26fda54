"""Counts of the requests that are held back at present, and of the attempts that servers refused or failed at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HeldBack:
    """What holds requests back at present."""

    by_limits: int = 0
    """Requests that wait because of rate limits."""
    refusals: int = 0
    """Attempts that servers have refused so far, as they came too fast."""
    after_errors: int = 0
    """Requests that wait to be sent again after an error."""
    errors: int = 0
    """Attempts that have failed otherwise so far, and that were or will be made again."""


class Repeats:
    """Attempts that failed in one way, and the requests that wait to be sent again."""

    def __init__(self) -> None:
        self.failed = 0
        self.waiting = 0

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Count a failed attempt, and its request as waiting until the block ends."""
        self.failed += 1
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1
