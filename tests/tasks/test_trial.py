"""The first piece of work goes alone, however it ends; nothing waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from flowevolve._util.errors import InputError
from flowevolve.tasks.trial import Trial


def ends(trial: Trial, first: Callable[[], Awaitable[str]], count: int = 3) -> tuple[list[object], list[int]]:
    """How pieces of work end that are begun together, and which of them were done."""
    done = list[int]()

    async def work(number: int) -> str:
        done.append(number)
        return await first() if number == 0 else "later"

    async def together() -> list[object]:
        jobs = [trial.run(partial(work, number)) for number in range(count)]
        return await asyncio.gather(*jobs, return_exceptions=True)

    return asyncio.run(together()), done


async def fine() -> str:
    await anyio.lowlevel.checkpoint()
    return "first"


async def wrong() -> str:
    await anyio.lowlevel.checkpoint()
    raise InputError("no score")


async def no_answer() -> str:
    await anyio.lowlevel.checkpoint()
    raise ValueError("no answer")


async def cancelled() -> str:
    raise asyncio.CancelledError


def test_the_others_begin_when_the_first_has_ended() -> None:
    order = list[str]()

    async def first() -> str:
        order.append("begins")
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        order.append("ends")
        return "first"

    async def later() -> str:
        order.append("later")
        return "later"

    async def together() -> None:
        trial = Trial()
        await asyncio.gather(trial.run(first), trial.run(later), trial.run(later))

    asyncio.run(together())
    assert order == ["begins", "ends", "later", "later"]


def test_an_error_that_would_end_a_run_is_that_of_all_who_waited_and_later_work_goes_on() -> None:
    trial = Trial()
    found, done = ends(trial, wrong)
    assert [str(error) for error in found] == ["no score"] * 3
    assert done == [0]
    found, done = ends(trial, fine)
    assert found == ["first", "later", "later"]


@pytest.mark.parametrize("first", [fine, no_answer, cancelled])
def test_however_else_the_first_ends_the_others_go_on(first: Callable[[], Awaitable[str]]) -> None:
    found, done = ends(Trial(), first)
    assert found[1:] == ["later"] * 2
    assert done == [0, 1, 2]
