"""Running jobs side by side: results as they come, failures as they are, and cancellation in a fixed order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from flowevolve._util import clock
from flowevolve._util.tasks import as_completed, beside, run_all, stray_cancellation_is_an_error

Job = Callable[[], Awaitable[int]]


class Jobs:
    """Jobs that sleep for so many seconds each, and remember in which order they were cancelled."""

    def __init__(self, *seconds: float, failing: int | None = None) -> None:
        self.cancelled: list[int] = []
        self._failing = failing
        self.all: list[Job] = [partial(self._run, number, each) for number, each in enumerate(seconds)]

    async def _run(self, number: int, seconds: float) -> int:
        try:
            await anyio.sleep(seconds)
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(number)
            raise
        if number == self._failing:
            raise ValueError(f"job {number}")
        return number


async def take(jobs: Jobs, most: int) -> list[int]:
    taken: list[int] = []
    async with aclosing(as_completed(jobs.all)) as results:
        async for index, result in results:
            assert index == result
            taken.append(result)
            if len(taken) == most:
                break
    return taken


def test_results_come_as_they_end() -> None:
    assert clock.run(take, Jobs(3.0, 1.0, 2.0), 9, clock="virtual") == [1, 2, 0]
    assert clock.run(take, Jobs(), 9, clock="virtual") == []


@pytest.mark.parametrize("size", [2, 60])
def test_leaving_early_cancels_the_rest_in_their_order(size: int) -> None:
    """Not in the order of a set of tasks: who is cancelled first frees the first slot, and runs must repeat exactly."""
    jobs = Jobs(1.0, *([50.0] * size))
    assert clock.run(take, jobs, 1, clock="virtual") == [0]
    assert jobs.cancelled == list(range(1, size + 1))


def test_a_failure_is_raised_as_it_is_and_cancels_the_rest_in_their_order() -> None:
    jobs = Jobs(1.0, *([50.0] * 40), failing=0)
    with pytest.raises(ValueError, match="job 0"):
        clock.run(take, jobs, 9, clock="virtual")
    assert jobs.cancelled == list(range(1, 41))
    again = Jobs(1.0, *([50.0] * 40), failing=0)
    with pytest.raises(ValueError, match="job 0"):
        clock.run(run_all, again.all, clock="virtual")
    assert again.cancelled == list(range(1, 41))


@pytest.mark.parametrize("way", ["left", "cancelled from outside", "a job fails"])
def test_what_a_cancelled_job_shields_is_waited_for(way: str) -> None:
    ended: list[float] = []

    async def slow_to_end() -> int:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(3.0)
            ended.append(anyio.current_time())
        return 0

    async def quick() -> int:
        await anyio.sleep(1.0)
        if way == "a job fails":
            raise ValueError("mine")
        return 1

    async def go() -> float:
        with anyio.move_on_after(2.0 if way == "cancelled from outside" else 99.0), suppress(ValueError):
            async with aclosing(as_completed([slow_to_end, quick])) as results:
                async for _ in results:
                    if way == "left":
                        break
        return anyio.current_time()

    expected = 5.0 if way == "cancelled from outside" else 4.0
    assert clock.run(go, clock="virtual") == expected
    assert ended == [expected]


def test_a_job_that_was_cancelled_by_somebody_else_ends_them_all() -> None:
    """A library may cancel what it waits for itself; nobody is to wait forever for such a job."""

    async def cancelled() -> int:
        await anyio.sleep(1.0)
        raise asyncio.CancelledError

    async def go() -> float:
        with pytest.raises(asyncio.CancelledError):
            await run_all([cancelled, anyio.sleep_forever])
        return anyio.current_time()

    assert clock.run(go, clock="virtual") == 1.0


def test_what_is_beside_a_block_ends_with_it_and_the_blocks_error_comes_out_as_it_is() -> None:
    ended: list[float] = []

    async def hold() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(anyio.current_time())

    async def go(error: Exception | None) -> None:
        async with beside() as tasks:
            tasks.start_soon(hold)
            await anyio.sleep(1.0)
            if error is not None:
                raise error

    clock.run(go, None, clock="virtual")
    with pytest.raises(ValueError, match="mine"):
        clock.run(go, ValueError("mine"), clock="virtual")
    assert ended == [1.0, 1.0]


def test_what_fails_beside_a_block_ends_it_and_comes_out_as_it_is() -> None:
    async def fail() -> None:
        await anyio.sleep(1.0)
        raise ValueError("beside")

    async def go() -> None:
        async with beside() as tasks:
            tasks.start_soon(fail)
            await anyio.sleep_forever()

    with pytest.raises(ValueError, match="beside"):
        clock.run(go, clock="virtual")


def test_a_cancellation_that_somebody_asked_for_stays_one() -> None:
    async def wait() -> None:
        async with stray_cancellation_is_an_error():
            await anyio.sleep_forever()

    async def go() -> tuple[bool, bool]:
        task = asyncio.ensure_future(wait())
        await anyio.lowlevel.checkpoint()
        task.cancel()
        await asyncio.wait([task])
        with anyio.move_on_after(1) as scope:
            await wait()
        return task.cancelled(), scope.cancelled_caught

    assert clock.run(go, clock="virtual") == (True, True)


def test_one_that_comes_before_the_scope_has_told_the_task_stays_one_too() -> None:
    async def go() -> bool:
        with anyio.CancelScope() as scope:
            async with stray_cancellation_is_an_error():
                scope.cancel()
                raise asyncio.CancelledError  # as anyio.from_thread.check_cancelled does in a worker thread
        return scope.cancelled_caught

    assert clock.run(go, clock="virtual")
