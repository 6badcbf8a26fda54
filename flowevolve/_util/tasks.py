"""Helpers for tasks: running several things side by side, and waking those who wait for a change."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from types import TracebackType
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

T = TypeVar("T")


async def run_all(jobs: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Run all jobs side by side and return their results in order.

    The first exception cancels the other jobs and is raised as it is, not wrapped in a group: the jobs are alike, so
    the others would only fail in the same way.
    """
    async with aclosing(as_completed(jobs)) as ended:
        results = {index: result async for index, result in ended}
    return [results[index] for index in range(len(jobs))]


async def as_completed(jobs: Sequence[Callable[[], Awaitable[T]]]) -> AsyncGenerator[tuple[int, T]]:
    """Run all jobs side by side, and yield (index, result) as they end. Use it under ``contextlib.aclosing``.

    A job's exception is raised here as it is. Leaving early, for whatever reason, cancels the jobs that have not ended
    and waits for them. Unlike a generator with a task group, this one may be suspended at a ``yield``.

    Each job is a bare task with a cancel scope of its own, which costs less than half as much as a task in a group. It
    is cancelled through its scope, so that what it shields stays shielded.
    """
    ended: deque[tuple[int, T]] = deque()
    failed: list[BaseException] = []
    changed = Pulse()

    async def run(index: int) -> None:
        try:
            with scopes[index]:
                ended.append((index, await jobs[index]()))
        except Exception as error:  # noqa: BLE001 - raised again below, as it is
            failed.append(error)
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            changed.fire()

    scopes = [anyio.CancelScope() for _ in jobs]
    tasks = [asyncio.create_task(run(index)) for index in range(len(jobs))]  # noqa: TID251 - waited for below
    try:
        for _ in jobs:
            while not ended and not failed:
                await changed.wait()
            if failed:
                raise failed[0]
            yield ended.popleft()
    finally:
        left = [index for index, task in enumerate(tasks) if not task.done()]
        for index in left:  # in order, so that they release their resources in the same order in every run
            scopes[index].cancel()
        if left:
            with anyio.CancelScope(shield=True):
                await asyncio.wait([tasks[index] for index in left])


@asynccontextmanager
async def beside() -> AsyncGenerator[TaskGroup]:
    """A task group for work beside a block. It is cancelled when the block ends.

    An exception of the block is raised as it is, not wrapped in a group. A task that fails ends the block, and its
    exception is raised instead.
    """
    failure: BaseException | None = None
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            except Exception as error:  # noqa: BLE001 - raised again below, outside the group that would wrap it
                failure = error
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        failure = failure or first_leaf(group)
    if failure is not None:
        raise failure


class _StrayCancellation:
    """Has no state, so that one object will do for all rollouts that are under way."""

    async def __aenter__(self) -> None:
        return

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, asyncio.CancelledError):
            return
        await checkpoint_if_cancelled()  # a scope that was cancelled may not have told the task yet
        task = asyncio.current_task()
        if task is None or task.cancelling():
            return
        raise RuntimeError("it raised CancelledError, but nobody has cancelled it").with_traceback(traceback) from error


_STRAY_CANCELLATION = _StrayCancellation()


def stray_cancellation_is_an_error() -> AbstractAsyncContextManager[None]:
    """A block of somebody else's code, in which a CancelledError that nobody has asked for is an error like any other,
    such as that of a task which the code itself has cancelled and awaits. Otherwise it would quietly end our own task.

    Raises:
        RuntimeError: instead of such a CancelledError.
    """
    return _STRAY_CANCELLATION


async def wait_in_any_case(event: anyio.Event) -> None:
    """Wait for an event, whoever cancels this task meanwhile. That takes effect at the next await."""
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not event.is_set():
            try:
                await event.wait()
            except asyncio.CancelledError as error:  # asyncio's own, from which no scope shields
                cancelled = error
    if cancelled is not None:
        cancel_at_next_await(cancelled)


def cancel_at_next_await(error: asyncio.CancelledError) -> None:
    """Have this task get an error again that it caught when asyncio cancelled it, as the same cancellation."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    task.cancel(*error.args)


def first_leaf(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first exception in a group that is not itself a group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class Pulse:
    """Wakes everybody who waits for a change. They have to look up themselves what has changed."""

    def __init__(self) -> None:
        self._fired: asyncio.Event | None = None
        """The event that the next `fire` sets; None as long as nobody waits."""

    def fire(self) -> None:
        if self._fired is not None:
            self._fired.set()
            self._fired = None

    async def wait(self) -> None:
        if self._fired is None:
            self._fired = asyncio.Event()
        await self._fired.wait()
