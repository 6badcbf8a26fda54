"""Notices that an async function of the user holds up the event loop, and with it the whole run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from flowevolve._util.user_warnings import warn_user

SHORT_SECONDS = 0.1
"""Calls that are shorter than this are not counted, whatever they do."""
MANY_SECONDS = 3.0
"""The warning comes after so many seconds, in real time, in which nothing else could happen."""


class BlockingWatch:
    """Warns once if calls of an async function take long, and await nothing in all that time. ``name`` is what messages
    call the function.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._seconds = 0.0
        self._warned = False

    @contextmanager
    def call(self) -> Iterator[None]:
        """A block in which one call of the function is awaited."""
        others = list[bool]()  # whether the event loop got to anything else
        asyncio.get_running_loop().call_soon(others.append, True)
        begun = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - begun
            if not others and seconds >= SHORT_SECONDS:
                self._add(seconds)

    def _add(self, seconds: float) -> None:
        self._seconds += seconds
        if self._seconds >= MANY_SECONDS and not self._warned:
            self._warned = True
            warn_user(
                f"{self._name} is async and has held up the whole run for {self._seconds:.1f} s, as it awaits nothing; "
                "make it a plain def, which is called in a thread, or await what takes long"
            )
