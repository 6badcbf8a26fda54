"""Which core a measurement has to itself."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import gettempdir
from threading import Event

import anyio

from flowevolve import clock
from flowevolve.sandbox.core_lock import CoreLock, acquire_any


class Cores:
    """A lock over processor cores: who holds one shares it with no other holder, in no process that uses ``folder``.

    In one process first come, first served; among processes who waits comes before who takes one again.
    """

    def __init__(self, cores: Iterable[int], folder: Path) -> None:
        self._cores = sorted(cores)
        self._turns = anyio.Semaphore(len(self._cores))
        self._threads = anyio.CapacityLimiter(len(self._cores))
        self._folder = folder

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[int]:
        """A core, for as long as the block lasts.

        Raises:
            InputError: if the folder can't be used.
        """
        async with self._turns:  # so that none is to be had only where other processes have some
            lock = self._taken() or await self._waited_for()
            try:
                yield lock.core
            finally:
                lock.close()

    def _taken(self) -> CoreLock | None:
        """The first that nobody has or waits for."""
        for core in self._cores:
            lock = CoreLock(self._folder, core)
            if lock.try_acquire():
                return lock
            lock.close()
        return None

    async def _waited_for(self) -> CoreLock:
        """The first that others leave."""
        locks = [CoreLock(self._folder, core) for core in self._cores]
        give_up, had = Event(), None
        try:
            had = await clock.in_thread_until(give_up.set, acquire_any, locks, give_up, limiter=self._threads)
        finally:
            for lock in locks:
                if lock is not had:
                    lock.close()
        assert had is not None, "only who is cancelled gives up"
        return had


def usable_cores() -> set[int]:
    """Those that this process may run on; elsewhere than on Linux, where none can be chosen, all."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


CORES = Cores(usable_cores(), Path(gettempdir()) / f"flowevolve-{os.getuid()}")
"""Of this user's processes on this machine, whichever sandbox they are used from."""
