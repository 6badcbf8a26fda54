"""How long a call may take, and who ended it: its own limit, or whoever cancelled it. On the virtual clock."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import anyio
import pytest

from flowevolve._util import clock
from flowevolve.core.model import UnreachableError
from flowevolve.llm.transports.failures import limited

pytestmark = pytest.mark.anyio

FOREVER = 1e6


@pytest.fixture
def anyio_backend(jumping_clock):
    return ("asyncio", jumping_clock)


async def hang(seconds):
    async with limited(seconds):
        await anyio.sleep(FOREVER)


def this_task():
    task = asyncio.current_task()
    assert task is not None
    return task


async def test_a_call_without_an_answer_fails_when_its_time_is_over() -> None:
    began = clock.now()
    with pytest.raises(UnreachableError, match="no complete answer within 5 s"):
        await hang(5)
    assert clock.now() == began + 5
    await anyio.sleep(1)  # what comes after it is not cancelled


async def test_the_limit_holds_for_the_call_alone() -> None:
    began = clock.now()
    async with limited(5):
        await anyio.sleep(4)
    await anyio.sleep(10)
    assert clock.now() == began + 14


@pytest.mark.parametrize("turn", ["before", "same, first", "same, last"])
async def test_a_cancellation_from_outside_is_no_failure(turn) -> None:
    loop, task = asyncio.get_running_loop(), this_task()
    if turn == "same, last":  # timers of one moment go off in the order in which they were set
        loop.call_soon(loop.call_later, 5, task.cancel)
    else:
        loop.call_later(5 if turn == "same, first" else 4, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await hang(5)
    assert task.uncancel() == 0


async def test_a_scope_that_ends_at_the_moment_of_the_limit_goes_before_it() -> None:
    with anyio.move_on_after(5) as scope:
        await hang(5)
    assert scope.cancelled_caught
    await anyio.sleep(1)


@pytest.mark.parametrize(("outer", "inner", "first"), [(2, 5, "outer"), (5, 5, "outer"), (5, 2, "inner")])
async def test_of_two_limits_the_one_that_is_over_fails(outer, inner, first) -> None:
    failed = []
    try:
        async with limited(outer):
            try:
                await hang(inner)
            except UnreachableError:
                failed.append("inner")
    except UnreachableError:
        failed.append("outer")
    assert failed == [first]


async def test_a_task_that_was_cancelled_before_has_a_limit_too() -> None:
    task = this_task()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await anyio.sleep(1)
    with pytest.raises(UnreachableError):
        await hang(5)
    assert task.uncancel() == 0


async def test_what_ends_in_spite_of_the_limit_has_not_failed() -> None:
    async with limited(5):
        with suppress(asyncio.CancelledError):
            await anyio.sleep(FOREVER)
    await anyio.sleep(1)
