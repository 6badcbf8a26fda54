"""Ctrl-C, SIGTERM and SIGHUP, from the start of a command's run to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from anyio.abc import TaskStatus

from flowevolve._util.signals import ending_signals
from flowevolve._util.tasks import beside
from flowevolve.core.stop_reasons import INTERRUPTED
from flowevolve.engine.engine import Engine
from flowevolve.runner.clients import SideTask

T = TypeVar("T")


async def until_interrupted(go: Callable[[SideTask], Awaitable[T]]) -> T | None:
    """What ``go`` returns, which gives its run what it is given itself; None if it was cut off.

    While the engine runs, the first signal stops it, and the second ends it at once; also where it was ending already,
    for a reason of its own. Before it has begun, and after it has ended, the first one cuts off what is under way, and
    another ends the process.
    """
    interrupts = _Interrupts()
    async with beside() as tasks:
        await tasks.start(interrupts.listen)
        with interrupts.scope:
            return await go(interrupts.side_task)
    return None


class _Interrupts:
    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self._engine: Engine | None = None
        self._told = False
        """Whether the engine was asked to stop, which it may be doing for a reason of its own."""

    async def side_task(self, engine: Engine) -> None:
        self._engine, self._told = engine, False
        try:
            await anyio.sleep_forever()
        finally:
            self._engine = None

    async def listen(self, *, task_status: TaskStatus[None]) -> None:
        with ending_signals() as signals:
            task_status.started()
            async for _ in signals:
                if self._engine is None:
                    self.scope.cancel()
                    return  # what another signal does is not up to us any more
                if self._told:
                    self._engine.cancel(INTERRUPTED)
                else:
                    self._told = True
                    self._engine.stop(INTERRUPTED)
