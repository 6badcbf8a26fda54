"""What is being waited for, such as the code of a user, for those who watch a run in which nothing happens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Self


class Wait(AbstractContextManager["Wait"]):
    """While it is entered, ``what``, such as ``metric, train row 5``, is being waited for."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.since = 0.0
        """Since when it is being waited for, in seconds of real time."""
        self.suspensions = 0
        """How many blocks of `suspended` are open."""

    def __enter__(self) -> Self:
        self.since = time.monotonic()
        _waits[id(self)] = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del _waits[id(self)]

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """A block in which what is waited for waits for something else itself, and so is not told."""
        self.suspensions += 1
        try:
            yield
        finally:
            self.suspensions -= 1
            self.since = time.monotonic()


_waits: dict[int, Wait] = {}
"""The waits that are entered, by their identity."""


def waited_for() -> str:
    """What has been waited for the longest, and for how long, in words; empty if nothing is being waited for."""
    waits = [wait for wait in list(_waits.values()) if not wait.suspensions]
    if not waits:
        return ""
    oldest = min(waits, key=lambda wait: wait.since)
    more = f" (and {len(waits) - 1} more)" if len(waits) > 1 else ""
    return f"{oldest.what}, for {time.monotonic() - oldest.since:.0f} s{more}"
