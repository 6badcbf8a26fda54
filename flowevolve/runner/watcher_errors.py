"""Exceptions that a run's watchers raise: they end the run, and are never taken for another failure."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio

from flowevolve._util.tasks import beside

T = TypeVar("T")


class WatcherErrors:
    """Keeps exceptions of watchers out of the work that called them, and ends a block with the first one.

    Otherwise an exception of a watcher of calls would come out of the call, as if the task or the server had failed.
    """

    def __init__(self) -> None:
        self._first: Exception | None = None
        self._raised = anyio.Event()

    def kept_from(self, tell: Callable[[T], None]) -> Callable[[T], None]:
        """A function that calls ``tell`` but raises nothing: `ending` raises the first exception."""

        def guarded(what: T) -> None:
            try:
                tell(what)
            except Exception as error:  # noqa: BLE001 - raised again by `ending`
                self._first = self._first or error
                self._raised.set()

        return guarded

    @asynccontextmanager
    async def ending(self) -> AsyncGenerator[None]:
        """A block that ends with the first error of a watcher, which is raised as it is."""
        async with beside() as tasks:
            tasks.start_soon(self._raise_first)
            yield
            if self._raised.is_set():
                await self._raise_first()

    async def _raise_first(self) -> None:
        await self._raised.wait()
        if self._first is not None:
            raise self._first
