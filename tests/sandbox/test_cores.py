"""Cores within a process: nobody has one that another has, and turns are kept."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import anyio
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve.sandbox.cores import Cores


@given(cores=st.sets(st.integers(0, 7), min_size=1), begins=st.lists(st.floats(0, 5), max_size=20))
def test_no_core_is_held_twice_and_none_is_lost(cores: set[int], begins: list[float]) -> None:
    held: set[int] = set()

    def work(lock: Cores) -> None:
        with lock.lent(Event()) as core:
            assert core in cores
            assert core not in held
            held.add(core)
            held.remove(core)

    async def main(folder: str) -> None:
        lock = Cores(cores, Path(folder))

        async def measure(seconds: float) -> None:
            await anyio.sleep(seconds)
            async with lock.turns:
                await clock.in_thread(work, lock)

        async with anyio.create_task_group() as tasks:
            for seconds in begins:
                tasks.start_soon(measure, seconds)
        with ExitStack() as stack:
            assert {stack.enter_context(lock.lent(Event())) for _ in cores} == cores

    with TemporaryDirectory() as folder:
        clock.run(main, folder, clock="virtual")


def test_who_takes_one_again_and_again_waits_behind_others(tmp_path: Path) -> None:
    order: list[str] = []

    async def main() -> None:
        lock = Cores([3], tmp_path)

        async def measure(name: str) -> None:
            for _ in range(3):
                async with lock.turns:
                    order.append(name)
                    await anyio.sleep(1)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(measure, "a")
            tasks.start_soon(measure, "b")

    clock.run(main, clock="virtual")
    assert order == ["a", "b", "a", "b", "a", "b"]


def test_who_comes_first_is_served_first(tmp_path: Path) -> None:
    order: list[int] = []

    async def main() -> None:
        lock = Cores([3], tmp_path)

        async def measure(number: int) -> None:
            async with lock.turns:
                order.append(number)
                await anyio.sleep(1)

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(measure, number)

    clock.run(main, clock="virtual")
    assert order == [0, 1, 2, 3]
