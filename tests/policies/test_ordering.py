"""Orderings as the gate uses them: who goes in when, by the order in which slots are given."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.llm.scheduling.request_queue import Order, QueuedRequest
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.policies.ordering import Fifo, LaterFirst

NEVER_FAIR = 1_000_000


def turns(order: Order, asks: Sequence[QueuedRequest], *, before: QueuedRequest | None = None) -> list[int]:
    """The order in which asks that all wait at a gate of one slot go in, by their place in the list.

    ``before`` holds the slot while the others arrive.
    """
    entered: list[int] = []

    async def visit(scheduler: Scheduler, number: int) -> None:
        async with scheduler.permit(asks[number]):
            entered.append(number)
            await anyio.lowlevel.checkpoint()

    async def go() -> None:
        scheduler = Scheduler(1, order)
        async with anyio.create_task_group() as tasks, scheduler.permit(before or QueuedRequest(group="before")):
            for number in range(len(asks)):
                tasks.start_soon(visit, scheduler, number)
                await anyio.sleep(1)

    clock.run(go, clock="virtual")
    return entered


def group_of(size: int, name: str, rank: int = 0, candidate: str | None = None) -> list[QueuedRequest]:
    return [QueuedRequest(rank, name, candidate)] * size


def test_later_stages_go_first() -> None:
    asks = [
        QueuedRequest(3, "generate"),
        QueuedRequest(1, "evaluate"),
        QueuedRequest(2, "screen"),
        QueuedRequest(1, "evaluate too"),
    ]
    assert turns(LaterFirst(), asks) == [1, 3, 2, 0]


def test_what_is_less_urgent_in_a_group_waits_behind_the_rest_of_its_rank() -> None:
    asks = [QueuedRequest(2, "a"), QueuedRequest(1, "a"), QueuedRequest(1, "b"), QueuedRequest(2, "b")]
    assert turns(LaterFirst(fair_every=NEVER_FAIR), asks) == [1, 2, 0, 3]


def test_an_evaluation_that_has_begun_is_finished_before_the_next() -> None:
    asks = [*group_of(3, "a"), *group_of(2, "b"), *group_of(3, "c")]
    mixed = [asks[n] for n in (0, 3, 5, 1, 4, 6, 2, 7)]
    entered = turns(LaterFirst(fair_every=NEVER_FAIR), mixed)
    assert [mixed[n].group for n in entered] == ["b"] * 2 + ["a"] * 3 + ["c"] * 3
    entered = turns(LaterFirst(nearly_finished=False, fair_every=NEVER_FAIR), mixed)
    assert [mixed[n].group for n in entered] == ["a"] * 3 + ["b"] * 2 + ["c"] * 3


def test_requests_in_flight_count_as_not_finished() -> None:
    """One group has a request in flight and two that wait, the other only two that wait."""

    async def go() -> list[str]:
        scheduler = Scheduler(2, LaterFirst(fair_every=NEVER_FAIR))
        entered: list[str] = []

        async def visit(name: str, seconds: float) -> None:
            async with scheduler.permit(QueuedRequest(0, name)):
                entered.append(name)
                await anyio.sleep(seconds)

        async with anyio.create_task_group() as tasks:
            for name, seconds in (("long", 10), ("other", 5), ("long", 1), ("long", 1), ("fresh", 1), ("fresh", 1)):
                tasks.start_soon(visit, name, seconds)
                await anyio.sleep(0.1)
        return entered

    assert clock.run(go, clock="virtual") == ["long", "other", "fresh", "fresh", "long", "long"]


def test_long_answers_start_early() -> None:
    one = [QueuedRequest(0, "a", None, tokens) for tokens in (10.0, 500.0, 0.0, 90.0)]
    assert turns(LaterFirst(), one) == [1, 3, 0, 2]
    assert turns(LaterFirst(long_first=False), one) == [0, 1, 2, 3]
    several = [QueuedRequest(0, str(tokens), None, tokens) for tokens in (10.0, 500.0, 0.0, 90.0)]
    assert turns(LaterFirst(), several) == [1, 3, 0, 2]


def test_a_candidates_groups_stay_together_where_that_costs_nothing() -> None:
    asks = [
        QueuedRequest(0, "1", "x"),
        QueuedRequest(0, "2", "y"),
        QueuedRequest(0, "3", "x"),
        QueuedRequest(0, "4", "y"),
        *group_of(2, "5", 0, "y"),
    ]
    before = QueuedRequest(0, "0", "y")
    assert turns(LaterFirst(), asks, before=before) == [1, 3, 0, 2, 4, 5]
    assert turns(LaterFirst(affinity=False), asks, before=before) == [0, 1, 2, 3, 4, 5]


def finished(order: Order, asks: Sequence[QueuedRequest], slots: int) -> dict[str, float]:
    """When each group's last answer came, if an answer takes as many seconds as is expected of it."""
    ended: dict[str, float] = {}

    async def visit(scheduler: Scheduler, ask: QueuedRequest) -> None:
        async with scheduler.permit(ask):
            await anyio.sleep(ask.expected_tokens)
        ended[ask.group] = anyio.current_time()

    async def go() -> None:
        scheduler = Scheduler(slots, order)
        async with anyio.create_task_group() as tasks:
            for ask in asks:
                tasks.start_soon(visit, scheduler, ask)

    clock.run(go, clock="virtual")
    return ended


def test_evaluations_end_one_after_another_instead_of_all_at_the_end() -> None:
    mixed = [QueuedRequest(0, str(number % 5), str(number % 5), 1.0) for number in range(100)]
    later, fifo = finished(LaterFirst(), mixed, 4), finished(Fifo(), mixed, 4)
    assert max(later.values()) == max(fifo.values()) == 25
    assert sum(fifo.values()) / 5 > 24
    assert sum(later.values()) / 5 < 18


def test_long_answers_first_cut_the_tail() -> None:
    lengths = [1.0] * 40 + [10.0]
    evaluation = [QueuedRequest(0, "evaluation", None, length) for length in lengths]
    assert finished(LaterFirst(), evaluation, 5) == {"evaluation": 11}  # the first five find the gate empty
    assert finished(LaterFirst(long_first=False), evaluation, 5) == {"evaluation": 18}


asks = st.lists(
    st.builds(
        QueuedRequest, st.integers(0, 3), st.sampled_from("abcd"), st.none() | st.sampled_from("xyz"), st.floats(0, 9)
    ),
    max_size=40,
)
switches = st.builds(LaterFirst, st.booleans(), st.booleans(), st.booleans(), st.integers(1, 9))


@given(asks)
def test_fifo_is_first_come_first_served(line: list[QueuedRequest]) -> None:
    assert turns(Fifo(), line) == list(range(len(line)))


@given(asks, switches)
def test_all_who_wait_go_in_once(line: list[QueuedRequest], order: LaterFirst) -> None:
    assert sorted(turns(order, line)) == list(range(len(line)))


@given(asks, st.booleans(), st.booleans(), st.booleans())
def test_rank_comes_before_everything_but_fairness(
    line: list[QueuedRequest], nearly_finished: bool, long_first: bool, affinity: bool
) -> None:
    entered = turns(LaterFirst(nearly_finished, long_first, affinity, NEVER_FAIR), line)
    assert [line[n].rank for n in entered] == sorted(ask.rank for ask in line)


@given(asks, switches)
def test_nobody_starves_however_many_others_keep_coming(line: list[QueuedRequest], order: LaterFirst) -> None:
    """Whoever waits behind n others has a slot after at most ``(n + 1) * fair_every`` more, whatever still arrives."""
    waited: dict[int, int] = {}

    async def go() -> None:
        scheduler = Scheduler(1, order)
        given_out = 0

        async def visit(number: int) -> None:
            nonlocal given_out
            async with scheduler.permit(line[number]):
                given_out += 1
                waited[number] = given_out
                await anyio.sleep(1)

        async def flood(name: int) -> None:
            """Always preferred: the first rank, a group of its own, the longest answer."""
            nonlocal given_out
            while len(waited) < len(line):
                async with scheduler.permit(QueuedRequest(-1, f"flood {name}", "x", 100.0)):
                    given_out += 1
                    await anyio.sleep(1)

        async with anyio.create_task_group() as tasks, scheduler.permit(QueuedRequest()):
            for number in range(len(line)):
                tasks.start_soon(visit, number)
                await anyio.lowlevel.checkpoint()
            for name in range(3):
                tasks.start_soon(flood, name)
            await anyio.sleep(1)

    clock.run(go, clock="virtual")
    assert all(waited[number] <= (number + 1) * order.fair_every for number in range(len(line)))


def test_fairness_can_be_rare_but_not_off() -> None:
    with pytest.raises(InputError, match="at least 1"):
        LaterFirst(fair_every=0)
