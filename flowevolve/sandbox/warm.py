"""Processes that wait for work, so that work need not wait for one to start. They are started and ended in threads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

import anyio

from flowevolve._util import clock
from flowevolve._util.errors import InputError, reason_of


class Process(Protocol):
    usable: bool
    """Whether the process can take more work."""

    def close(self) -> None:
        """Kill the process and wait until it is gone."""
        ...


P = TypeVar("P", bound=Process)


class Warm(Generic[P]):
    """Lends out processes of one kind."""

    def __init__(self, start: Callable[[], P], threads: anyio.CapacityLimiter) -> None:
        self._start_one = start
        self._threads = threads
        self._idle: list[P] = []

    @asynccontextmanager
    async def lent(self, *, fresh: bool = False) -> AsyncGenerator[P]:
        """Lend a process while the block lasts; a ``fresh`` one has done nothing before.

        Raises:
            InputError: if none can be started.
        """
        process = self._idle.pop() if self._idle and not fresh else await self._start()
        try:
            yield process
        finally:
            if process.usable:
                self._idle.append(process)
            else:
                await self._close(process)

    async def close(self) -> None:
        """End the idle processes."""
        while self._idle:
            await self._close(self._idle.pop())

    async def _start(self) -> P:
        try:
            return await clock.in_thread(self._start_one, limiter=self._threads)
        except OSError as error:
            file = f" ({error.filename!r})" if error.filename else ""
            raise InputError(
                f"sandbox: a process that runs programs or functions can't be started here: {reason_of(error)}{file}; "
                "end other processes, or raise what this user may have (ulimit -u processes, ulimit -n open files)"
            ) from error

    async def _close(self, process: P) -> None:
        with anyio.CancelScope(shield=True):
            await clock.in_thread(process.close, limiter=self._threads)
