"""Gives each measurement a processor core of its own."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import gettempdir
from threading import Event

import anyio

from flowevolve._util import clock
from flowevolve._util.cores import usable_cores
from flowevolve.sandbox.core_lock import CoreLock, acquire_any


class Cores:
    """Lends out processor cores, each to one holder at a time among all processes that use ``folder``.

    Within a process, cores are lent first come, first served. Between processes, one that waits comes before one that
    takes a core again.
    """

    def __init__(self, cores: Iterable[int], folder: Path) -> None:
        self._cores = sorted(cores)
        self._turns = anyio.Semaphore(len(self._cores))
        self._threads = anyio.CapacityLimiter(len(self._cores))
        self._folder = folder

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[int]:
        """A core, which is held until the block ends.

        Raises:
            InputError: if the folder can't be used.
        """
        async with self._turns:  # so that after this, cores can only be missing because other processes hold them
            lock = self._taken() or await self._waited_for()
            try:
                yield lock.core
            finally:
                lock.close()

    def _taken(self) -> CoreLock | None:
        """The lock on the first core that nobody holds or waits for; None if there is none."""
        for core in self._cores:
            lock = CoreLock(self._folder, core)
            if lock.try_acquire():
                return lock
            lock.close()
        return None

    async def _waited_for(self) -> CoreLock:
        """The lock on the first core that another process releases."""
        locks = [CoreLock(self._folder, core) for core in self._cores]
        give_up, had = Event(), None
        try:
            had = await clock.in_thread_until(give_up.set, acquire_any, locks, give_up, limiter=self._threads)
        finally:
            for lock in locks:
                if lock is not had:
                    lock.close()
        assert had is not None, "`give_up` is only set on cancellation"
        return had


CORES = Cores(usable_cores(), Path(gettempdir()) / f"flowevolve-{os.getuid()}")
"""The cores of this machine, shared by all sandboxes of all processes of this user."""
