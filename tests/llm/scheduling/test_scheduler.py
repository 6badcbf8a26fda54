import gc

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.llm.scheduling.request_queue import Group, QueuedRequest, Waiter
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.policies.ordering import Fifo, LaterFirst

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(jumping_clock):
    return ("asyncio", jumping_clock)


async def hold(scheduler, rank, seconds, log=None, name=None, group="") -> None:
    async with scheduler.permit(QueuedRequest(rank, group)):
        if log is not None:
            log.append(name)
        await anyio.sleep(seconds)


async def test_orders_by_rank_and_then_by_arrival() -> None:
    scheduler = Scheduler(1)
    order: list[str] = []
    async with anyio.create_task_group() as tasks:
        for name, priority in [("first", 9), ("c", 2), ("a", 1), ("d", 2), ("b", 1)]:
            tasks.start_soon(hold, scheduler, priority, 1, order, name)
            await anyio.sleep(0.01)
    assert order == ["first", "a", "b", "c", "d"]


async def test_statistics_are_exact() -> None:
    scheduler = Scheduler(2)
    assert scheduler.stats().mean_in_flight == 0
    await anyio.sleep(5)  # the time before the first request does not count
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(hold, scheduler, 0, 4)
        await anyio.sleep(1)
        stats = scheduler.stats()
        assert (stats.limit, stats.in_flight, stats.waiting, stats.peak, stats.mean_in_flight) == (2, 2, 1, 2, 2)
    await anyio.sleep(4)
    stats = scheduler.stats()
    assert (stats.in_flight, stats.waiting, stats.peak) == (0, 0, 2)
    assert stats.mean_in_flight == pytest.approx((2 * 4 + 4) / 12)


async def test_a_raised_limit_lets_waiters_through_at_once_and_a_lowered_one_takes_none_back() -> None:
    scheduler = Scheduler(1)
    entered: list[int] = []
    async with anyio.create_task_group() as tasks:
        for name in range(6):
            tasks.start_soon(hold, scheduler, 0, 10, entered, name)
        await anyio.sleep(1)
        scheduler.limit = 4
        await anyio.sleep(1)
        assert entered == [0, 1, 2, 3]
        scheduler.limit = 1
        assert scheduler.stats().in_flight == 4
        await anyio.sleep(8.5)  # the first has left, three are still more than one
        assert entered == [0, 1, 2, 3]
        await anyio.sleep(1)
        assert entered == [0, 1, 2, 3, 4]
    assert scheduler.stats().peak == 4


async def test_a_slot_survives_an_error_inside() -> None:
    scheduler = Scheduler(1)
    with pytest.raises(KeyError):
        async with scheduler.permit(QueuedRequest()):
            raise KeyError
    async with scheduler.permit(QueuedRequest()):
        assert scheduler.stats().in_flight == 1


async def test_waiters_that_gave_up_are_not_kept() -> None:
    def kept() -> int:
        gc.collect()
        return sum(isinstance(each, Group | Waiter) for each in gc.get_objects())

    scheduler = Scheduler(1)
    before = kept()
    async with scheduler.permit(QueuedRequest()):
        for number in range(1000):
            with anyio.move_on_after(0.001):
                await hold(scheduler, 0, 0, group=str(number % 10))
        assert scheduler.stats().waiting == 0
        assert kept() - before < 20


async def test_says_how_many_of_a_group_are_left_when_one_goes_in() -> None:
    scheduler = Scheduler(1)
    left: list[int] = []

    async def one() -> None:
        async with scheduler.permit(QueuedRequest(group="evaluation")) as remaining:
            left.append(remaining)
            await anyio.sleep(1)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(one)
        tasks.start_soon(hold, scheduler, 0, 1)
    assert left == [1, 2, 1]


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_below_one_is_refused(limit) -> None:
    with pytest.raises(InputError, match="at least 1"):
        Scheduler(limit)
    scheduler = Scheduler(1)
    with pytest.raises(InputError, match="at least 1"):
        scheduler.limit = limit


@pytest.mark.parametrize("fair_every", [2, 100])
async def test_who_was_cancelled_with_a_slot_in_hand_leaves_no_trace_in_the_order_of_others(fair_every) -> None:
    async def entered(cancelled_first: int) -> list[str]:
        """The order of four requests when four others are cancelled at once, this one of them first."""
        scheduler = Scheduler(1, LaterFirst(fair_every=fair_every))
        order: list[str] = []
        scopes = [anyio.CancelScope() for _ in range(4)]

        async def enter(number: int, scope: anyio.CancelScope, what: str) -> None:
            with scope:
                async with scheduler.permit(QueuedRequest(0, f"{what} {number}", f"candidate {number}")):
                    await anyio.sleep(1)
                    order.append(f"{what} {number}")

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(enter, number, scopes[number], "cancelled")
            for number in (1, 3, 2, 4):
                tasks.start_soon(enter, number, anyio.CancelScope(), "late")
            await anyio.sleep(0.5)
            for scope in [scopes[cancelled_first], *scopes]:
                scope.cancel()
        return order

    first, *others = [await entered(cancelled_first=number) for number in range(4)]
    assert others == [first, first, first]


groups = st.sampled_from("abc")


@given(st.lists(st.tuples(st.integers(-2, 2), groups, st.booleans()), max_size=30), st.integers(1, 4))
def test_those_who_wait_enter_in_order_whoever_leaves_the_line(jumping_clock, line, limit) -> None:
    order: list[int] = []

    async def main() -> None:
        scheduler = Scheduler(limit)
        async with anyio.create_task_group() as tasks:
            for _ in range(limit):
                tasks.start_soon(hold, scheduler, 0, 100)
            await anyio.sleep(1)
            leavers = []
            for name, (rank, group, leaves) in enumerate(line):
                scope = anyio.CancelScope()
                leavers += [scope] if leaves else []
                tasks.start_soon(wait_in, scope, scheduler, rank, name, group)
                await anyio.sleep(0.1)
            for scope in leavers:
                scope.cancel()

    async def wait_in(scope, scheduler, rank, name, group) -> None:
        with scope:
            await hold(scheduler, rank, 1, order, name, group)

    anyio.run(main, backend_options=jumping_clock)
    stayed = [(rank, name) for name, (rank, _, leaves) in enumerate(line) if not leaves]
    assert order == [name for _, name in sorted(stayed)]


ticks = st.integers(0, 12)
asks = st.builds(
    QueuedRequest, st.integers(0, 3), groups, st.none() | st.sampled_from("xy"), st.sampled_from([0.0, 10.0, 20.0])
)
visits = st.tuples(ticks, ticks, asks, st.none() | ticks)
orders = st.sampled_from([None, Fifo(), LaterFirst(), LaterFirst(False, False, False, 2), LaterFirst(fair_every=1)])
limit_changes = st.lists(st.tuples(ticks, st.integers(1, 5)), max_size=3)


@given(st.integers(1, 4), orders, st.lists(visits, max_size=25), limit_changes)
def test_slots_are_neither_lost_nor_given_twice_whatever_is_cancelled(
    jumping_clock, limit, order, plan, changes
) -> None:
    """Visitors arrive, leave and are cancelled at the same few instants, so that grants and cancels collide."""
    scheduler = Scheduler(limit, order)
    finished = set()
    inside, highest = 0, limit

    def check() -> None:
        stats = scheduler.stats()
        assert stats.waiting == 0 or stats.in_flight >= scheduler.limit
        assert inside <= stats.in_flight <= highest

    async def visit(number, arrival, held, ask, cancelled) -> None:
        nonlocal inside
        await anyio.sleep(arrival)
        with anyio.move_on_after(cancelled):
            async with scheduler.permit(ask):
                inside += 1
                check()
                try:
                    await anyio.sleep(held)
                finally:
                    inside -= 1
            finished.add(number)
        check()

    async def change(at, new_limit) -> None:
        nonlocal highest
        await anyio.sleep(at)
        highest = max(highest, new_limit)
        scheduler.limit = new_limit
        check()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for number, (arrival, held, ask, cancelled) in enumerate(plan):
                tasks.start_soon(visit, number, arrival, held, ask, cancelled)
            for at, new_limit in changes:
                tasks.start_soon(change, at, new_limit)
        stats = scheduler.stats()
        assert (stats.in_flight, stats.waiting) == (0, 0)
        async with anyio.create_task_group() as tasks:  # every slot can still be had
            for _ in range(scheduler.limit):
                tasks.start_soon(hold, scheduler, 0, 1)
            await anyio.sleep(0.5)
            assert scheduler.stats().in_flight == scheduler.limit

    anyio.run(main, backend_options=jumping_clock)
    assert finished >= {number for number, (*_, cancelled) in enumerate(plan) if cancelled is None}
