"""Processes that wait for work: none is lost."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import pytest

from flowevolve._util import clock
from flowevolve.sandbox.warm import Warm


class Started:
    """A process that takes until it is let to start."""

    usable = True

    def __init__(self, begun: threading.Event, let: threading.Event) -> None:
        begun.set()
        let.wait()
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("kind", ["real", "virtual"])
def test_a_process_whose_user_is_cancelled_while_it_starts_is_kept_and_ended_with_the_others(kind: clock.Clock) -> None:
    begun, let = threading.Event(), threading.Event()
    started: list[Started] = []

    def start() -> Started:
        started.append(Started(begun, let))
        return started[-1]

    async def go() -> None:
        warm = Warm(start, anyio.CapacityLimiter(1))

        async def use() -> None:
            async with warm.lent():
                await anyio.sleep_forever()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use)
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
            let.set()
        async with warm.lent() as again:
            assert started == [again]
        await warm.close()

    clock.run(go, clock=kind)
    assert started[0].closed
