"""Queues lose nothing and duplicate nothing, and nobody waits in them for ever, whatever is cancelled; a full queue holds
its producers back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve.engine.queue import ItemQueue
from tests.support.depth import examples


@pytest.mark.asyncio
async def test_first_in_first_out() -> None:
    queue = ItemQueue[int](10, anyio.current_time)
    for number in range(3):
        await queue.put(number)
    assert [await queue.take() for _ in range(3)] == [[0], [1], [2]]


@pytest.mark.asyncio
async def test_a_full_queue_holds_producers_back_in_order() -> None:
    queue = ItemQueue[int](1, anyio.current_time)
    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(queue.put, number)
        await wait_all_tasks_blocked()
        assert len(queue) == 1
        assert [await queue.take() for _ in range(3)] == [[0], [1], [2]]
    assert queue.stats().max_depth == 1


@pytest.mark.asyncio
async def test_put_back_never_blocks() -> None:
    queue = ItemQueue[int](1, anyio.current_time)
    queue.put_back(1)
    queue.put_back(2)
    assert len(queue) == 2


@pytest.mark.asyncio
async def test_gathering_waits_for_enough_and_flush_gives_what_there_is() -> None:
    queue = ItemQueue[int](10, anyio.current_time, gather=3)
    taken: list[list[int]] = []

    async def take_twice() -> None:
        taken.append(await queue.take())
        taken.append(await queue.take())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_twice)
        for number in range(4):
            await queue.put(number)
        await wait_all_tasks_blocked()
        assert taken == [[0, 1, 2]]
        queue.flush()
    assert taken == [[0, 1, 2], [3]]


@examples(60)
@given(
    capacity=st.integers(1, 3),
    gather=st.integers(1, 3),
    producers=st.lists(st.integers(0, 4), min_size=1, max_size=5),
    consumers=st.integers(1, 4),
    cancels=st.lists(st.integers(0, 8), max_size=6),
)
def test_nothing_is_lost_or_doubled_under_cancellation(
    capacity: int, gather: int, producers: list[int], consumers: int, cancels: list[int]
) -> None:
    put: list[tuple[int, int]] = []
    taken: list[tuple[int, int]] = []

    async def run() -> None:
        queue = ItemQueue[tuple[int, int]](max(capacity, gather), anyio.current_time, gather)
        scopes: list[anyio.CancelScope] = []

        async def produce(who: int, count: int) -> None:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                for number in range(count):
                    await queue.put((who, number))
                    put.append((who, number))

        async def consume() -> None:
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                while True:
                    taken.extend(await queue.take())
                    await checkpoint()

        async with anyio.create_task_group() as tasks:
            for _ in range(consumers):
                tasks.start_soon(consume)
            for who, count in enumerate(producers):
                tasks.start_soon(produce, who, count)
            for victim in cancels:
                await checkpoint()
                if victim < len(scopes):
                    scopes[victim].cancel()
            await wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        left = queue.drain()
        assert sorted([*taken, *left]) == sorted(put)
        stats = queue.stats()
        assert stats.put == len(put)
        assert stats.taken == len(put)

    anyio.run(run)


Step = Literal["take", "put", "put back", "flush", "step", "wait"] | int
"""What happens next; a number stands for a cancellation of that one of those who wait."""


class WatchedQueue:
    """A queue with what is known of it from outside: who waits, and what is inside."""

    def __init__(self, capacity: int, gather: int, *, keyed: bool) -> None:
        self._keyed = keyed
        self._queue = ItemQueue[int](capacity, anyio.current_time, gather, self._key if keyed else None)
        self._inside: list[int] = []
        self._waiting: dict[int, tuple[Literal["take", "put"], anyio.CancelScope]] = {}
        self._flushed = False

    @staticmethod
    def _key(entry: int) -> int:
        return entry % 2

    async def go_through(self, steps: Sequence[Step]) -> None:
        async with anyio.create_task_group() as tasks:
            for number, step in enumerate([*steps, "wait"]):
                match step:
                    case "take":
                        tasks.start_soon(self._take, number)
                    case "put":
                        tasks.start_soon(self._put, number)
                    case "put back":
                        self._queue.put_back(number)
                        self._inside.append(number)
                    case "flush":
                        self._queue.flush()
                        self._flushed = bool(self._inside)
                    case "step":
                        await checkpoint()
                    case "wait":
                        await wait_all_tasks_blocked()
                        self._check()
                    case int() if self._waiting:
                        list(self._waiting.values())[step % len(self._waiting)][1].cancel()
            tasks.cancel_scope.cancel()

    async def _take(self, number: int) -> None:
        with self._noted(number, "take"):
            for entry in await self._queue.take():
                self._inside.remove(entry)
            self._flushed = False

    async def _put(self, number: int) -> None:
        with self._noted(number, "put"):
            await self._queue.put(number)
            self._inside.append(number)

    @contextmanager
    def _noted(self, number: int, what: Literal["take", "put"]) -> Iterator[None]:
        with anyio.CancelScope() as scope:
            self._waiting[number] = what, scope
            try:
                yield
            finally:
                del self._waiting[number]

    def _check(self) -> None:
        waiting = {what for what, _ in self._waiting.values()}
        sizes = Counter(map(self._key, self._inside)).values() if self._keyed else [len(self._inside)]
        full = len(self._inside) >= self._queue.capacity
        enough = max(sizes, default=0) >= self._queue.gather or (self._keyed and full)
        assert len(self._queue) == len(self._inside)
        assert "put" not in waiting or full
        assert "take" not in waiting or not (enough or (self._flushed and self._inside))


@examples(500)
@given(
    capacity=st.integers(1, 3),
    gather=st.integers(1, 3),
    keyed=st.booleans(),
    steps=st.sampled_from([("take", "take", "take", "put"), ("put", "put", "put", "take")]).flatmap(
        lambda more: st.lists(
            st.sampled_from((*more, "put back", "put back", "flush", "step", "wait", 0, 0, 1)),
            min_size=20,
            max_size=40,
        )
    ),
)
def test_nobody_waits_for_what_is_there(capacity: int, gather: int, keyed: bool, steps: list[Step]) -> None:
    async def run() -> None:
        await WatchedQueue(capacity, gather, keyed=keyed).go_through(steps)

    clock.run(run, clock="virtual")


@pytest.mark.asyncio
async def test_who_is_cancelled_with_the_turn_in_hand_leaves_it_to_the_next() -> None:
    queue = ItemQueue[int](10, anyio.current_time)
    taken: list[tuple[str, list[int]]] = []

    async def take(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            taken.append((name, await queue.take()))

    async with anyio.create_task_group() as tasks:
        first, second = anyio.CancelScope(), anyio.CancelScope()
        tasks.start_soon(take, "first", first)
        await wait_all_tasks_blocked()
        tasks.start_soon(take, "second", second)
        await wait_all_tasks_blocked()
        queue.put_back(1)
        first.cancel()
        await wait_all_tasks_blocked()
        second.cancel()
    assert taken == [("second", [1])]


@pytest.mark.asyncio
async def test_an_emptied_queue_remembers_no_batch() -> None:
    queue = ItemQueue[int](4, anyio.current_time, gather=2)
    queue.put_together([1])
    assert queue.drain() == [1]
    await queue.put(2)
    with anyio.move_on_after(0):
        raise AssertionError(f"took {await queue.take()}, which is too few")
    await queue.put(3)
    assert await queue.take() == [2, 3]


@pytest.mark.asyncio
async def test_who_waits_for_more_than_is_taken_together_now_gets_what_there_is() -> None:
    queue = ItemQueue[int](4, anyio.current_time, gather=3)
    taken: list[int] = []

    async def take() -> None:
        taken.extend(await queue.take())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        for number in range(2):
            await queue.put(number)
        await wait_all_tasks_blocked()
        assert not taken
        queue.set_gather(2)
        await wait_all_tasks_blocked()
        assert taken == [0, 1]


@pytest.mark.asyncio
async def test_there_is_room_for_as_many_as_are_taken_together() -> None:
    queue = ItemQueue[int](1, anyio.current_time)
    await queue.put(0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.put, 1)
        await wait_all_tasks_blocked()
        assert len(queue) == 1
        queue.set_gather(2)
    assert await queue.take() == [0, 1]
    queue.set_gather(1)
    assert queue.capacity == 2


@pytest.mark.asyncio
async def test_only_entries_of_one_key_are_taken_together_of_the_oldest_if_none_has_enough() -> None:
    queue = ItemQueue[str](4, anyio.current_time, gather=2, key=lambda entry: entry[0])
    for entry in ("a1", "b1", "c1", "b2"):
        await queue.put(entry)
    assert await queue.take() == ["b1", "b2"]
    for entry in ("d1", "e1"):
        await queue.put(entry)
    assert await queue.take() == ["a1"], "it is full, and no key has two"
    queue.flush()
    assert await queue.take() == ["c1"]
    for entry in ("e2", "e3", "d2"):
        queue.put_back(entry)
    assert await queue.take() == ["d1", "d2"]
    assert await queue.take() == ["e1", "e2"]


@pytest.mark.asyncio
async def test_what_was_put_together_is_taken_together_before_all_else() -> None:
    queue = ItemQueue[int](8, anyio.current_time, gather=2)
    queue.put_together([1, 2, 3])
    queue.put_together([4])
    await queue.put(5)
    assert [await queue.take(), await queue.take()] == [[1, 2, 3], [4]]
    await queue.put(6)
    assert await queue.take() == [5, 6]


@pytest.mark.asyncio
async def test_a_flush_holds_for_one_batch_and_for_nothing_in_an_empty_queue() -> None:
    queue = ItemQueue[int](8, anyio.current_time, gather=2)
    queue.flush()
    await queue.put(1)
    with anyio.move_on_after(0):
        raise AssertionError(f"took {await queue.take()}")
    queue.flush()
    assert await queue.take() == [1]
    await queue.put(2)
    with anyio.move_on_after(0):
        raise AssertionError(f"took {await queue.take()}")


@pytest.mark.asyncio
async def test_some_are_drained_and_what_is_left_is_taken_in_order() -> None:
    queue = ItemQueue[int](4, anyio.current_time)
    for number in range(4):
        await queue.put(number)
    assert queue.drain(2) == [0, 1]
    assert queue.drain(9) == [2, 3]
    assert queue.drain() == []


def test_what_is_measured_of_a_queue() -> None:
    async def run() -> None:
        await anyio.sleep(5)
        queue = ItemQueue[int](4, anyio.current_time)
        assert (queue.stats().mean_depth, queue.stats().depth_seconds) == (0, 0)
        queue.put_back(1)
        assert queue.stats().mean_depth == 1, "no time has gone by"
        await anyio.sleep(2)
        queue.put_back(2)
        queue.put_back(3)
        await anyio.sleep(1)
        assert await queue.take() == [1]
        await anyio.sleep(2)
        assert await queue.take() == [2]
        await anyio.sleep(1)
        stats = queue.stats()
        assert (stats.put, stats.taken, stats.depth, stats.max_depth) == (3, 2, 1, 3)
        assert (stats.depth_seconds, stats.wait_seconds) == (2 * 1 + 1 * 3 + 2 * 2 + 1 * 1, 3 + 3)
        assert stats.mean_depth == 10 / 6

    clock.run(run, clock="virtual")


@pytest.mark.asyncio
async def test_who_waits_gets_fewer_that_were_put_together() -> None:
    queue = ItemQueue[int](4, anyio.current_time, gather=3)
    taken: list[int] = []

    async def take() -> None:
        taken.extend(await queue.take())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        await wait_all_tasks_blocked()
        queue.put_together([1])
        await wait_all_tasks_blocked()
        assert taken == [1]
        tasks.cancel_scope.cancel()
