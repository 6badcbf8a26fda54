"""Small helpers around tasks: running several things side by side, and waking who waits for a change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

T = TypeVar("T")


async def run_all(jobs: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Run all jobs side by side and return their results in order.

    The first exception cancels the others and is raised as it is, not wrapped in a group: jobs are alike, so the others
    would only repeat it.
    """
    results: dict[int, T] = {}
    failure: list[Exception] = []

    async def run(index: int) -> None:
        try:
            results[index] = await jobs[index]()
        except Exception as error:  # noqa: BLE001 - raised again below, as it is
            failure.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for index in range(len(jobs)):
            tasks.start_soon(run, index)
    if failure:
        raise failure[0]
    return [results[index] for index in range(len(jobs))]


class Pulse:
    """Wakes everybody who waits for something to have changed; what changed, they look up themselves."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def fire(self) -> None:
        self._event.set()
        self._event = anyio.Event()

    async def wait(self) -> None:
        await self._event.wait()
