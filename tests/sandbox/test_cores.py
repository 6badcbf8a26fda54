"""Cores within an event loop: nobody has one that another has, and turns are kept."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import anyio
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve.sandbox.cores import Cores


@given(
    cores=st.sets(st.integers(0, 7), min_size=1), holds=st.lists(st.floats(0, 5), max_size=20), give_up=st.floats(0, 20)
)
def test_no_core_is_held_twice_and_none_is_lost(cores: set[int], holds: list[float], give_up: float) -> None:
    held: set[int] = set()

    def work(lock: Cores) -> None:
        with lock.lent(Event()) as core:
            assert core in cores
            assert core not in held
            held.add(core)
            held.remove(core)

    async def main(folder: str) -> None:
        lock = Cores(cores, Path(folder))
        turns = lock.turns()

        async def measure(seconds: float) -> None:
            async with turns:
                await anyio.sleep(seconds)
                await clock.in_thread(work, lock)

        with anyio.move_on_after(give_up):
            async with anyio.create_task_group() as tasks:
                for seconds in holds:
                    tasks.start_soon(measure, seconds)
        for _ in cores:  # all turns can be had at once again, and all cores
            turns.acquire_nowait()
        with ExitStack() as stack:
            assert {stack.enter_context(lock.lent(Event())) for _ in cores} == cores

    with TemporaryDirectory() as folder:
        clock.run(main, folder, clock="virtual")


def test_who_takes_one_again_and_again_waits_behind_others(tmp_path: Path) -> None:
    order: list[str] = []

    async def main() -> None:
        turns = Cores([3], tmp_path).turns()

        async def measure(name: str) -> None:
            for _ in range(3):
                async with turns:
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
        turns = Cores([3], tmp_path).turns()

        async def measure(number: int) -> None:
            async with turns:
                order.append(number)
                await anyio.sleep(1)

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(measure, number)

    clock.run(main, clock="virtual")
    assert order == [0, 1, 2, 3]


def test_a_turn_that_comes_to_somebody_who_left_is_the_next_ones(tmp_path: Path) -> None:
    async def main() -> None:
        lock = Cores([0], tmp_path)
        turns = lock.turns()
        async with anyio.create_task_group() as tasks:
            leaving = anyio.CancelScope()

            async def leaves() -> None:
                with leaving:
                    async with turns:
                        await anyio.sleep_forever()

            async with turns:
                tasks.start_soon(leaves)
                await anyio.wait_all_tasks_blocked()
            leaving.cancel()  # in the same breath in which its turn came
        async with turns:
            with lock.lent(Event()) as core:
                assert core == 0

    clock.run(main, clock="virtual")
