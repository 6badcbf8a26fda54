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
from flowevolve._util.cores import usable_cores
from flowevolve.sandbox.claim import Claim, wait_for_one


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
            claim = self._taken() or await self._waited_for()
            try:
                yield claim.core
            finally:
                claim.close()

    def _taken(self) -> Claim | None:
        """The first that nobody has or waits for."""
        for core in self._cores:
            claim = Claim(self._folder, core)
            if claim.take():
                return claim
            claim.close()
        return None

    async def _waited_for(self) -> Claim:
        """The first that others leave."""
        claims = [Claim(self._folder, core) for core in self._cores]
        give_up, had = Event(), None
        try:
            had = await clock.in_thread_until(give_up.set, wait_for_one, claims, give_up, limiter=self._threads)
        finally:
            for claim in claims:
                if claim is not had:
                    claim.close()
        assert had is not None, "only who is cancelled gives up"
        return had


CORES = Cores(usable_cores(), Path(gettempdir()) / f"flowevolve-{os.getuid()}")
"""Of this user's processes on this machine, whichever sandbox they are used from."""
