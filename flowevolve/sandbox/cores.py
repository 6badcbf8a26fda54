"""Which core a measurement has to itself."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import gettempdir
from threading import Event

import anyio

from flowevolve import clock
from flowevolve.sandbox.claim import Claim


class Cores:
    """A lock over processor cores: who holds one shares it with no other holder, in no process that uses ``folder``.

    In one process first come, first served; among processes who waits comes before who takes one again.
    """

    def __init__(self, cores: Iterable[int], folder: Path) -> None:
        self._free = deque(sorted(cores))
        """Those that nobody in this process has or waits for."""
        self._turns = anyio.Semaphore(len(self._free))
        self._threads = anyio.CapacityLimiter(len(self._free))
        self._folder = folder

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[int]:
        """A core, for as long as the block lasts.

        Raises:
            InputError: if the folder can't be used.
        """
        async with self._turns:
            claim = self._claim()
            try:
                if not claim.held:
                    give_up = Event()
                    await clock.in_thread_until(give_up.set, claim.wait, give_up, limiter=self._threads)
                yield claim.core
            finally:
                claim.close()
                self._free.append(claim.core)

    def _claim(self) -> Claim:
        """The first that no other process has; if there is none, the first, to wait for."""
        for _ in self._free.copy():
            claim = Claim(self._folder, self._free[0])
            if claim.take():
                break
            claim.close()
            self._free.rotate(-1)
        else:
            claim = Claim(self._folder, self._free[0])
        self._free.popleft()
        return claim


def usable_cores() -> set[int]:
    """Those that this process may run on; elsewhere than on Linux, where none can be chosen, all."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


CORES = Cores(usable_cores(), Path(gettempdir()) / f"flowevolve-{os.getuid()}")
"""Of this user's processes on this machine, whichever sandbox they are used from."""
