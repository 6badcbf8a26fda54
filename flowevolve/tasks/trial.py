"""Work that is tried once before the rest of it begins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from flowevolve._util.errors import FlowevolveError

T = TypeVar("T")


class Trial:
    """Lets the first piece of work go alone: if an error ends it that would end a run, the others that wait for it end
    by the same error, and cost nothing. For one run.
    """

    def __init__(self) -> None:
        self._over: anyio.Event | None = None
        self._error: FlowevolveError | None = None

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """What the work returns, when the first has ended in whatever way.

        Raises:
            FlowevolveError: the one of the first, to those that have waited for it.
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
