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
        self._waiting: deque[anyio.Event] = deque()

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[int]:
        """A core, for as long as the block lasts."""
        core = await self._take()
        try:
            yield core
        finally:
            self._free.append(core)
            self._wake()

    async def _take(self) -> int:
        if self._waiting or not self._free:
            turn = anyio.Event()
            self._waiting.append(turn)
            try:
                await turn.wait()
            except BaseException:
                if turn.is_set():  # cancelled when it was our turn: it is the next one's
                    self._wake()
                else:
                    self._waiting.remove(turn)
                raise
        return self._free.popleft()

    def _wake(self) -> None:
        if self._waiting and self._free:
            self._waiting.popleft().set()


def usable_cores() -> set[int]:
    """Those that this process may run on; elsewhere than on Linux, where none can be chosen, all."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


CORES = Cores(usable_cores())
"""Of this process, whichever sandbox they are used from."""
