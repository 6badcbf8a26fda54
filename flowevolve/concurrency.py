"""Small helpers around tasks: running several things side by side, and waking who waits for a change."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

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


async def as_completed(tasks: TaskGroup, jobs: Sequence[Callable[[], Awaitable[T]]]) -> AsyncGenerator[tuple[int, T]]:
    """Run all jobs side by side in a task group of the caller's and yield (index, result) as they end.

    A job's exception is raised here as it is. Leaving early, for whatever reason, cancels what is still open; the task
    group waits for that. Unlike a generator with a task group of its own, this one may be suspended at a ``yield``.
    """
    ended: deque[tuple[int, T]] = deque()
    failed: list[Exception] = []
    changed = anyio.Event()
    scope = anyio.CancelScope()

    async def run(index: int) -> None:
        try:
            ended.append((index, await jobs[index]()))
        except Exception as error:  # noqa: BLE001 - raised again below, as it is
            failed.append(error)
        changed.set()

    async def run_jobs() -> None:
        with scope:
            async with anyio.create_task_group() as own:
                for index in range(len(jobs)):
                    own.start_soon(run, index)

    tasks.start_soon(run_jobs)
    try:
        for _ in jobs:
            while not ended and not failed:
                changed = anyio.Event()
                await changed.wait()
            if failed:
                raise failed[0]
            yield ended.popleft()
    finally:
        scope.cancel()


class Pulse:
    """Wakes everybody who waits for something to have changed; what changed, they look up themselves."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def fire(self) -> None:
        self._event.set()
        self._event = anyio.Event()

    async def wait(self) -> None:
        await self._event.wait()
