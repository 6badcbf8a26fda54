"""The virtual clock jumps from timer to timer, in order, and stands still for work in threads."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from operator import getitem

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve._util.errors import EngineError, InputError


@given(st.lists(st.integers(0, 10**9), max_size=20))
def test_sleepers_wake_in_order_at_their_time(milliseconds: list[int]) -> None:
    """Not closer than asyncio can tell timers apart, which is the resolution of the real clock."""
    delays = [each / 1000 for each in milliseconds]
    woken: list[tuple[float, float]] = []

    async def sleeper(delay: float) -> None:
        await anyio.sleep(delay)
        woken.append((anyio.current_time(), delay))

    async def go() -> None:
        assert anyio.current_time() == 0.0
        async with anyio.create_task_group() as tasks:
            for delay in delays:
                tasks.start_soon(sleeper, delay)

    clock.run(go, clock="virtual")
    assert [delay for _, delay in woken] == sorted(delays)
    assert all(time == pytest.approx(delay) for time, delay in woken)


def test_deadlines_are_virtual_too() -> None:
    async def go() -> float:
        with anyio.move_on_after(3600) as scope:
            await anyio.sleep_forever()
        assert scope.cancelled_caught
        return anyio.current_time()

    assert clock.run(go, clock="virtual") == pytest.approx(3600)


def test_work_in_a_thread_holds_the_clock() -> None:
    release = threading.Event()

    async def go() -> tuple[float, float]:
        finished: list[float] = []

        async def work() -> None:
            await clock.in_thread(release.wait)
            finished.append(anyio.current_time())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await anyio.lowlevel.checkpoint()
            threading.Timer(0.05, release.set).start()
            await anyio.sleep(1000)
        return finished[0], anyio.current_time()

    finished, ended = clock.run(go, clock="virtual")
    assert finished == clock.THREAD_SECONDS
    assert ended == pytest.approx(1000)


def test_results_of_threads_come_in_as_handed_over_however_long_they_take() -> None:
    second_ran = threading.Event()

    async def go() -> list[tuple[str, float]]:
        ended: list[tuple[str, float]] = []

        async def work(name: str, job: Callable[[], object]) -> None:
            with suppress(KeyError):
                await clock.in_thread(job)
            ended.append((name, anyio.current_time()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, "first", second_ran.wait)
            tasks.start_soon(work, "second", second_ran.set)
            tasks.start_soon(work, "failing", partial(getitem, {}, "missing"))
        return ended

    tick = clock.THREAD_SECONDS
    assert clock.run(go, clock="virtual") == [
        ("first", tick),
        ("second", 2 * tick),
        ("failing", pytest.approx(3 * tick)),
    ]


@given(st.integers(0, 12), st.integers(2, 12), st.integers(0, 3))
def test_sleepers_of_one_moment_wake_in_the_same_order_whenever_the_thread_ends(
    at: int, sleepers: int, longer: int
) -> None:
    """The thread ends before the first sleeper lies down, or after ``at`` of them."""

    def order(at: int) -> list[int]:
        woken: list[int] = []
        begun, release, ended = threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            release.wait(10)
            ended.set()

        async def sleeper(number: int) -> None:
            if number == at:
                release.set()
                ended.wait(10)
            for _ in range(20):  # turns in which the result may come in
                await anyio.lowlevel.checkpoint()
            await anyio.sleep(1 + number % (longer + 1))
            woken.append(number)

        async def go() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(clock.in_thread, work)
                while not begun.is_set():
                    await anyio.lowlevel.checkpoint()
                for number in range(sleepers):
                    tasks.start_soon(sleeper, number)
                    await anyio.lowlevel.checkpoint()
                release.set()

        clock.run(go, clock="virtual")
        return woken

    assert order(at) == order(0)


@pytest.mark.parametrize("kind", ["real", "virtual"])
def test_what_a_thread_returns_is_not_lost_if_the_task_is_cancelled_meanwhile(kind: clock.Clock) -> None:
    begun, release = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        release.wait()
        return "opened"

    async def go() -> list[str]:
        opened: list[str] = []
        scope = anyio.CancelScope()

        async def open_it() -> None:
            with scope:
                opened.append(await clock.in_thread(work))
                await anyio.sleep_forever()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_it)
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            scope.cancel()
            release.set()
        assert scope.cancelled_caught
        return opened

    assert clock.run(go, clock=kind) == ["opened"]


@pytest.mark.parametrize("kind", ["real", "virtual"])
def test_neither_is_it_if_asyncio_cancels_the_task_even_twice(kind: clock.Clock) -> None:
    begun, release = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        release.wait()
        return "opened"

    async def go() -> tuple[list[str], bool]:
        opened: list[str] = []

        async def open_it() -> None:
            opened.append(await clock.in_thread(work))
            await anyio.sleep_forever()

        task = asyncio.ensure_future(open_it())
        while not begun.is_set():
            await anyio.lowlevel.checkpoint()
        for _ in range(2):
            task.cancel()
            await anyio.lowlevel.checkpoint()
        assert not task.done()
        release.set()
        await asyncio.wait([task])
        return opened, task.cancelled()

    assert clock.run(go, clock=kind) == (["opened"], True)


def test_work_that_a_task_waits_to_begin_is_not_done_once_asyncio_has_cancelled_the_task() -> None:
    done: list[str] = []

    async def go() -> None:
        limiter = anyio.CapacityLimiter(1)
        async with limiter:
            task = asyncio.ensure_future(clock.in_thread(done.append, "done", limiter=limiter))
            await anyio.lowlevel.checkpoint()
            task.cancel()
            await asyncio.wait([task])
        assert task.cancelled()

    clock.run(go)
    assert not done


def test_what_may_not_move_a_virtual_clock_is_done_in_a_thread_only_on_a_real_one() -> None:
    async def go() -> tuple[bool, float]:
        thread = await clock.in_thread_unless_virtual(threading.current_thread)
        return thread is threading.current_thread(), anyio.current_time()

    assert clock.run(go, clock="virtual") == (True, 0.0)
    in_the_loops_own, _ = clock.run(go, clock="real")
    assert not in_the_loops_own


def test_the_results_of_threads_whose_tasks_are_cancelled_come_in_in_order_too() -> None:
    second_ran = threading.Event()

    async def go() -> list[str]:
        came_in: list[str] = []
        begun, release = threading.Barrier(3), threading.Event()

        def first() -> str:
            begun.wait()
            second_ran.wait()
            return "first"

        def second() -> str:
            begun.wait()
            release.wait()
            second_ran.set()
            return "second"

        async def work(job: Callable[[], str]) -> None:
            came_in.append(await clock.in_thread(job))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, first)
            tasks.start_soon(work, second)
            while begun.n_waiting < 2:
                await anyio.lowlevel.checkpoint()
            begun.wait()
            tasks.cancel_scope.cancel()
            release.set()
        return came_in

    assert clock.run(go, clock="virtual") == ["first", "second"]


def fail() -> None:
    raise InputError("so it is")


@pytest.mark.parametrize("kind", ["real", "virtual"])
def test_what_a_thread_raises_comes_as_it_is(kind: clock.Clock) -> None:
    for function in (clock.in_thread, partial(clock.in_thread_until, lambda: None)):
        with pytest.raises(InputError, match="so it is"):
            clock.run(function, fail, clock=kind)


def test_a_virtual_clock_runs_beside_a_real_one() -> None:
    async def an_hour(started: float) -> float:
        await anyio.sleep(3600)
        return anyio.current_time() - started

    async def go() -> tuple[float, float]:
        began = anyio.current_time()
        return await clock.run_beside(an_hour, 0.0, clock="virtual"), anyio.current_time() - began

    inside, outside = clock.run(go)
    assert inside == 3600 > outside


class Endless:
    """Work that goes on until it is cancelled."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), list[float]()

    async def __call__(self) -> None:
        self.begun.set()
        try:
            for _ in count():
                await anyio.sleep(1)
        finally:
            self.ended.append(anyio.current_time())


def test_what_runs_beside_is_cancelled_with_whoever_waits_for_it() -> None:
    work = Endless()

    async def go() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(clock.run_beside, work, clock="virtual"))
            await clock.in_thread(work.begun.wait)
            tasks.cancel_scope.cancel()

    clock.run(go)
    assert work.ended


def test_it_has_ended_when_asyncio_has_cancelled_whoever_waits_for_it() -> None:
    work = Endless()

    async def go() -> bool:
        task = asyncio.ensure_future(clock.run_beside(work, clock="virtual"))
        await clock.in_thread(work.begun.wait)
        task.cancel()
        await asyncio.wait([task])
        return bool(work.ended) and task.cancelled()

    assert clock.run(go)


def test_what_fails_beside_fails_here() -> None:
    async def failing() -> None:
        fail()

    with pytest.raises(InputError, match="so it is"):
        clock.run(partial(clock.run_beside, failing, clock="virtual"))


def test_a_deadlock_is_an_error_not_a_hang() -> None:
    async def go() -> None:
        await anyio.Event().wait()

    with pytest.raises(EngineError, match="nothing to wait for"):
        clock.run(go, clock="virtual")


def test_the_real_clock_is_real() -> None:
    async def go() -> float:
        began = anyio.current_time()
        assert await clock.in_thread(threading.get_ident) != threading.get_ident()
        return anyio.current_time() - began

    assert 0 <= clock.run(go) < 60


async def running_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_real_time_is_that_of_uvloop_where_it_is_installed() -> None:
    uvloop = pytest.importorskip("uvloop")
    assert isinstance(clock.run(running_loop), uvloop.Loop)
    assert isinstance(clock.run(running_loop, clock="virtual"), clock.VirtualClockLoop)


def test_without_uvloop_it_is_that_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert isinstance(clock.run(running_loop), asyncio.BaseEventLoop)


def test_real_time_is_that_of_the_loop_that_is_asked_for() -> None:
    pytest.importorskip("uvloop")
    assert isinstance(clock.run(running_loop, uvloop=False), asyncio.BaseEventLoop)


async def is_that_of_asyncio() -> bool:
    return clock.running_loop() is asyncio.get_running_loop()


def test_the_running_loop_is_that_of_this_thread_within_a_run_and_after_it() -> None:
    async def go() -> bool:
        elsewhere = await clock.in_thread(partial(asyncio.run, is_that_of_asyncio()))
        return elsewhere and await is_that_of_asyncio()

    for kind in ("virtual", "real"):
        assert clock.run(go, clock=kind)
        assert asyncio.run(is_that_of_asyncio())
    with pytest.raises(RuntimeError):
        clock.running_loop()


def test_programs_are_run_in_real_time() -> None:
    async def go() -> bytes:
        with anyio.fail_after(60):
            return (await anyio.run_process([sys.executable, "-c", "print(input()[::-1])"], input=b"loop\n")).stdout

    assert clock.run(go).strip() == b"pool"
