"""Tries one piece of work before the rest begins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from flowevolve._util.errors import FlowevolveError

T = TypeVar("T")


class Trial:
    """Lets the first piece of work go alone. If it fails with an error that ends a run, the others that wait for it
    fail with the same error, at no cost. A trial is for one run.
    """

    def __init__(self) -> None:
        self._over: anyio.Event | None = None
        self._error: FlowevolveError | None = None

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do a piece of work, which waits until the first one has ended, and return its result.

        Raises:
            FlowevolveError: the error of the first piece of work, if this one has waited for it.
        """
        if self._over is None:
            return await self._run_first(work)
        if not self._over.is_set():
            await self._over.wait()
            if self._error is not None:
                raise self._error
        return await work()

    async def _run_first(self, work: Callable[[], Awaitable[T]]) -> T:
        self._over = anyio.Event()
        try:
            return await work()
        except FlowevolveError as error:
            self._error = error
            raise
        finally:
            self._over.set()
