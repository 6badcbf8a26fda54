"""Batches whose size is set while a run goes on, by a policy that sees how long the last ones took, and by a key."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import cast

import anyio
import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.errors import EngineError
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Gathered, Item, Ticket
from flowevolve.core.policies import Batch, Waiting
from flowevolve.core.pool import Candidate, Note
from flowevolve.engine.queue import ItemQueue
from tests.support.depth import cuts
from tests.support.interruption import Fact, events_of, evolve


class Doubling:
    """Twice the last batch while that took no longer than ``seconds``, else half of it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def next(self, past: Sequence[Batch]) -> int:
        if not past:
            return 1
        return past[-1].size * 2 if past[-1].seconds <= self.seconds else past[-1].size // 2


class Combining(fe.Algorithm):
    """Tickets of two kinds are combined, which takes a second for each in a batch."""

    name = "combining"
    archives = ()

    def __init__(self, tickets: int = 24, *, by_kind: bool = False, width: Doubling | None = None) -> None:
        self._tickets = tickets
        self._by_kind = by_kind
        self._width = width

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        return Graph(
            (
                Stage("start", self._start, ("combine",)),
                Stage(
                    "combine",
                    self._combine,
                    ("update",),
                    gather=8,
                    gather_by=Doubling(3.0),
                    gather_key=(lambda item: item.expect(int) % 2) if self._by_kind else None,
                ),
                CommittingStage("update", self._update),
            ),
            entry="start",
            step_width=self._width,
        )

    async def _start(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if (ordinal := item.expect(Ticket).ordinal) >= self._tickets:
            raise Exhausted
        yield Emit(ordinal)

    async def _combine(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        members = item.expect(Gathered).items
        await anyio.sleep(len(members))
        yield Emit([member.expect(int) for member in members])

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        context.commit([Note("combined", {"members": item.expect(list)})])
        for emission in NO_EMISSIONS:
            yield emission


def combined(facts: Sequence[Fact]) -> list[list[int]]:
    batches: list[list[int]] = []
    for event in events_of(facts, "pool.commit"):
        (change,) = cast("list[dict[str, dict[str, list[int]]]]", event.data["changes"])
        batches.append(change["data"]["members"])
    return batches


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_policy_sets_how_many_are_gathered_by_how_long_the_last_took(mode: str) -> None:
    _, facts = evolve(Combining(), mode=mode, max_in_flight=8)
    sizes = list(map(len, combined(facts)))
    assert sum(sizes) == 24
    if mode == "stream":
        assert sizes[:6] == [1, 2, 4, 2, 4, 2]
    else:
        assert sizes[:9] == [1] * 8 + [2]


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_only_items_with_the_same_key_are_gathered(mode: str) -> None:
    _, facts = evolve(Combining(by_kind=True), mode=mode, max_in_flight=8)
    batches = combined(facts)
    assert all(len({number % 2 for number in batch}) == 1 for batch in batches)
    assert sorted(number for batch in batches for number in batch) == list(range(24))
    assert max(map(len, batches)) > 1


@pytest.mark.parametrize("by_kind", [False, True])
@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_interrupted_after_any_event_every_item_is_combined_once(mode: str, by_kind: bool) -> None:
    def algorithm() -> Combining:
        return Combining(12, by_kind=by_kind, width=Doubling(10.0))

    _, facts = evolve(algorithm(), mode=mode, max_in_flight=8)
    for end in cuts(facts):
        _, whole = evolve(algorithm(), facts[:end], mode=mode, max_in_flight=8)
        assert sorted(number for batch in combined(whole) for number in batch) == list(range(12))
        done = Counter(event.data["item"] for event in events_of(whole, "item.done"))
        assert set(done.values()) == {1}


def test_the_width_of_lockstep_is_set_from_step_to_step() -> None:
    _, facts = evolve(Combining(width=Doubling(5.0)), mode="sync", max_in_flight=8)
    widths = [event.data["width"] for event in events_of(facts, "width.changed")]
    steps = [event.data["flows"] for event in events_of(facts, "step.ended")]
    assert widths[:4] == [1, 2, 4, 8]
    assert steps[:4] == [1, 2, 4, 8]
    _, stream = evolve(Combining(width=Doubling(5.0)), max_in_flight=8)
    assert not events_of(stream, "width.changed")


def test_a_run_that_goes_on_in_the_middle_of_a_step_keeps_to_its_width() -> None:
    _, facts = evolve(Combining(width=Doubling(5.0)), mode="sync", max_in_flight=8)
    second = events_of(facts, "width.changed")[1]
    assert second.data["width"] == 2
    first_flow = next(event for event in events_of(facts, "flow.open") if event.seq > second.seq)
    _, whole = evolve(
        Combining(width=Doubling(5.0)), facts[: facts.index(first_flow) + 1], mode="sync", max_in_flight=8
    )
    (resumed,) = events_of(whole, "run.resumed")
    closed = next(event for event in events_of(whole, "flow.close") if event.seq > resumed.seq)
    assert len([e for e in events_of(whole, "flow.open") if resumed.seq < e.seq < closed.seq]) == 1


class Measuring(Combining):
    """Two are combined at a time, and nothing is done beside that."""

    def graph(self) -> Graph:
        start, combine, update = super().graph().stages
        return Graph((start, replace(combine, gather=2, gather_by=None, exclusive=True), update), entry="start")


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_batches_that_were_not_begun_are_gathered_when_the_run_goes_on(mode: str) -> None:
    _, facts = evolve(Measuring(4), mode=mode)
    end = facts.index(events_of(facts, "items.gathered")[0]) + 1
    _, whole = evolve(Measuring(4), facts[:end], mode=mode)
    assert list(map(len, combined(whole))) == [2, 2]


class Thrice:
    """Items leave once what earlier stages spent is three times what the next one spends on a batch."""

    def __init__(self) -> None:
        self.asked: list[Waiting] = []

    def leaves(self, waiting: Waiting) -> bool:
        self.asked.append(waiting)
        return 0 < 3 * waiting.price.rollouts <= waiting.spent.rollouts


class Departing(Combining):
    """Each ticket costs a rollout, and so does each batch at the stage that commits."""

    def __init__(self, departure: Thrice) -> None:
        super().__init__(24)
        self._departure = departure

    def graph(self) -> Graph:
        start, combine, update = super().graph().stages
        departing = replace(combine, gather=8, gather_by=None, departs=self._departure)
        return Graph((start, departing, update), entry="start")

    async def _start(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(5)
        context.spend(fe.Cost(rollouts=1))
        async for emission in super()._start(item, context):
            yield emission

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        context.spend(fe.Cost(rollouts=1))
        async for emission in super()._update(item, context):
            yield emission


def test_items_leave_when_the_policy_says_so_by_what_was_spent_on_them() -> None:
    departure = Thrice()
    _, facts = evolve(Departing(departure), max_in_flight=8)
    sizes = list(map(len, combined(facts)))
    assert sum(sizes) == 24
    assert sizes[2:-1] == [3] * len(sizes[2:-1]), "the price is known from the second on"
    assert all(waiting.items > 0 for waiting in departure.asked)
    assert {waiting.price.rollouts for waiting in departure.asked} == {0, 1}


def test_departures_go_on_where_a_run_was_interrupted() -> None:
    _, facts = evolve(Departing(Thrice()), max_in_flight=8)
    for end in cuts(facts):
        _, whole = evolve(Departing(Thrice()), facts[:end], max_in_flight=8)
        assert sorted(number for batch in combined(whole) for number in batch) == list(range(24))


def test_a_queue_full_of_different_keys_gives_out_the_oldest_ones() -> None:
    async def go() -> None:
        queue = ItemQueue[str](4, anyio.current_time, gather=2, key=lambda entry: entry[0])
        for entry in ("a1", "b1", "c1"):
            await queue.put(entry)
        with anyio.move_on_after(0):
            await queue.take()
            raise AssertionError("nothing could be gathered")
        await queue.put("b2")
        assert await queue.take() == ["b1", "b2"]
        await queue.put("d1")
        await queue.put("e1")
        assert await queue.take() == ["a1"]
        queue.set_gather(1)
        assert await queue.take() == ["c1"]
        assert queue.stats().taken == 4

    clock.run(go, clock="virtual")


def test_a_policy_or_a_key_for_a_stage_that_gathers_nothing_is_refused() -> None:
    with pytest.raises(EngineError, match="the most it may gather"):
        Stage("s", Combining()._combine, gather_by=Doubling(1.0))
