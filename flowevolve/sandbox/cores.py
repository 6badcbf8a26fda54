"""Which core a measurement has to itself."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import anyio


class Cores:
    """A lock over processor cores: who holds one shares it with no other holder. First come, first served."""

    def __init__(self, cores: Iterable[int]) -> None:
        self._free = deque(sorted(cores))
        self._turns = anyio.Semaphore(len(self._free))

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[int]:
        """A core, for as long as the block lasts."""
        async with self._turns:
            core = self._free.popleft()
            try:
                yield core
            finally:
                self._free.append(core)


def usable_cores() -> set[int]:
    """Those that this process may run on; elsewhere than on Linux, where none can be chosen, all."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


CORES = Cores(usable_cores())
"""Of this process, whichever sandbox they are used from."""
