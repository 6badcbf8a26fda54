"""The workers of a stage: how many there are, who leaves, and what is measured of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import pytest
from anyio import wait_all_tasks_blocked

from flowevolve._util import clock
from flowevolve.core.context import StageContext
from flowevolve.core.graph import NO_EMISSIONS, Emit, Stage
from flowevolve.core.item import Item
from flowevolve.core.policies import StageLoad
from flowevolve.engine.counters import StageCounts
from flowevolve.engine.queue import QueueStats
from flowevolve.engine.workers import WorkerPool


async def idle(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    for emission in NO_EMISSIONS:
        yield emission


def pool(workers: int, bounds: tuple[int, int] | None = None) -> WorkerPool:
    return WorkerPool(Stage("write", idle, workers=workers, bounds=bounds))


def hire(workers: WorkerPool) -> list[int]:
    """Hire all that are missing; their numbers."""
    return [workers.hire() for _ in range(workers.missing)]


@pytest.mark.asyncio
async def test_there_are_as_many_as_are_wanted_within_the_bounds() -> None:
    workers = pool(2, (1, 3))
    assert hire(workers) == [0, 1]
    assert (workers.resize(1), workers.resize(1), workers.wanted) == (True, False, 3)
    assert hire(workers) == [2]
    assert (workers.resize(-2), workers.resize(-1), workers.wanted) == (True, False, 1)
    assert [workers.keeps(number) for number in (2, 1, 0)] == [False, False, True]
    assert workers.missing == 0
    workers.resize(2)
    assert hire(workers) == [1, 2], "the lowest numbers that are free"
    workers.disband()
    assert hire(workers) == [0, 1, 2]


@pytest.mark.asyncio
async def test_without_bounds_their_number_is_fixed() -> None:
    workers = pool(2)
    assert not workers.resize(1)
    assert not workers.resize(-1)


@pytest.mark.asyncio
async def test_those_who_are_idle_leave_at_once_and_the_others_after_their_item() -> None:
    workers = pool(3, (1, 3))
    hire(workers)
    arrived = anyio.Event()
    taken: dict[int, str | None] = {}

    async def take() -> str:
        await arrived.wait()
        return "an item"

    async def wait(number: int) -> None:
        taken[number] = await workers.wait(number, take)

    async with anyio.create_task_group() as tasks:
        for number in (0, 1):
            tasks.start_soon(wait, number)
        await wait_all_tasks_blocked()
        workers.resize(-1)
        await wait_all_tasks_blocked()
        assert taken == {1: None}
        assert not workers.keeps(1)
        arrived.set()
    assert taken == {0: "an item", 1: None}
    assert workers.keeps(2)
    workers.resize(-1)
    assert workers.keeps(0) != workers.keeps(2), "one of the two leaves"


@pytest.mark.parametrize(
    ("room", "least", "hires", "wanted"),
    [(6, 0, True, 6), (1, 5, True, 4), (1, 3, True, 3), (1, 0, True, 1), (6, 0, False, 2), (1, 0, False, 2)],
)
@pytest.mark.asyncio
async def test_room_on_machines_raises_the_bound(room: int, least: int, hires: bool, wanted: int) -> None:
    workers = pool(2, (1, 4))
    assert workers.make_room(room, least, hire=hires) == wanted - 2
    assert workers.wanted == wanted
    while workers.resize(1):
        pass
    assert workers.wanted == max(4, room)


@pytest.mark.asyncio
async def test_when_machines_go_the_bound_falls_back_to_the_stages_own() -> None:
    workers = pool(2, (1, 4))
    workers.make_room(9, 0, hire=True)
    assert workers.make_room(1, 0, hire=False) == -5
    assert workers.wanted == 4


@pytest.mark.asyncio
async def test_its_load_is_what_happened_since_it_was_last_asked() -> None:
    workers = pool(2, (1, 3))

    def stats(depth_seconds: float) -> QueueStats:
        return QueueStats(0, 0, 0, 0, 0.0, depth_seconds, 0.0)

    workers.load(StageCounts(items_in=4, items_out=3, gaps=2), stats(5.0), "later", 10.0)
    load = workers.load(StageCounts(items_in=8, items_out=9, gaps=8), stats(25.0), "first", 10.0)
    assert load == StageLoad("write", "first", 2, 1, 3, busy=0.0, waiting=2.0, produced=6, gap=1.5)
    same = workers.load(StageCounts(items_in=8, items_out=9, gaps=8), stats(25.0), "first", 10.0)
    assert (same.waiting, same.produced, same.gap) == (0.0, 0, 0.0)


def test_how_many_are_busy_is_a_mean_over_time() -> None:
    async def measured() -> float:
        workers = pool(2, (1, 3))
        with workers.busy:
            await anyio.sleep(3)
        await anyio.sleep(1)
        return workers.load(StageCounts(), QueueStats(0, 0, 0, 0, 0.0, 0.0, 0.0), "later", 4.0).busy

    assert clock.run(measured, clock="virtual") == 0.75
