"""What the code of a user is being waited for, for those who watch a run in which nothing happens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_waits: dict[object, tuple[str, float]] = {}
"""What is being waited for, in words, and since when, in seconds of real time; the oldest first."""


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """A block in which ``what``, such as ``metric, train row 5``, is being waited for."""
    wait = object()
    _waits[wait] = (what, time.monotonic())
    try:
        yield
    finally:
        del _waits[wait]


def waited_for() -> str:
    """What has been waited for the longest, and for how long, in words; empty if nothing is being waited for."""
    waits = list(_waits.values())
    if not waits:
        return ""
    what, since = waits[0]
    more = f" (and {len(waits) - 1} more)" if len(waits) > 1 else ""
    return f"{what}, for {time.monotonic() - since:.0f} s{more}"
