"""Notices that an async function of the user holds up the event loop, and with it the whole run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from time import monotonic
from types import coroutine
from typing import TypeVar

from flowevolve._util.user_warnings import warn_user

T = TypeVar("T")

SHORT_SECONDS = 0.1
"""Times that are shorter than this are not counted."""
MANY_SECONDS = 3.0
"""The warning comes after so many seconds, in real time, in which nothing else could happen."""


class BlockingWatch:
    """Warns once if an async function works for long without awaiting anything, at its beginning or after it has
    awaited something. ``name`` is what messages call the function.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._seconds = 0.0
        self._warned = False

    async def result(self, call: Awaitable[T]) -> T:
        """Await what the function returned."""
        return await _timed(_awaited(call), self._add)

    def _add(self, seconds: float) -> None:
        if seconds >= SHORT_SECONDS:
            self._seconds += seconds
        if self._seconds >= MANY_SECONDS and not self._warned:
            self._warned = True
            warn_user(
                f"{self._name} is async and has held up the whole run for {self._seconds:.1f} s, in which it awaited "
                "nothing; make it a plain def, which is called in a thread, or await what takes long"
            )


async def _awaited(call: Awaitable[T]) -> T:
    return await call


@coroutine
def _timed(call: Coroutine[object, object, T], tell: Callable[[float], None]) -> Generator[object, object, T]:
    """Await a coroutine, and tell after each of its steps how many seconds it took: from one time that it waits for
    something to the next. Nothing else runs in that time.
    """
    step = partial(call.send, None)
    while True:
        begun = monotonic()
        try:
            waits_for = step()
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            tell(monotonic() - begun)
        try:
            step = partial(call.send, (yield waits_for))
        except BaseException as error:  # noqa: BLE001 - whatever ends the wait, the coroutine gets it
            step = partial(call.throw, error)
