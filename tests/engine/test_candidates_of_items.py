"""What becomes of the candidates that items are about, as their items end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import anyio
import pytest

from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import (
    NO_EMISSIONS,
    Discard,
    Emit,
    Exhausted,
    Stage,
)
from flowevolve.core.item import Item, Ticket
from flowevolve.core.pool import Add, Candidate, Move
from flowevolve.policies.staleness import Guarded, Reflective
from tests.support.small_runs import (
    Carrier,
    Small,
    five_plans,
    no_work,
    nothing,
    once,
    propose,
    run_small,
)


async def measure(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    await anyio.sleep(1)
    yield Emit(Carrier(item.expect(Carrier).candidate.scored({"x": 0.5})))


@pytest.mark.parametrize("phase", ["init", "finish"])
def test_work_of_a_phase_is_not_judged_for_staleness(phase: str) -> None:
    evaluate = Stage("evaluate", measure, ("update",), workers=5)
    init, finish = (five_plans("evaluate"), nothing) if phase == "init" else (nothing, five_plans("evaluate"))
    ran = run_small(Small(no_work, evaluate, init=init, finish=finish), staleness=Guarded(0))
    assert ran.report.pool.version == 5
    assert ran.report.staleness.seen == 0


def test_a_candidate_without_parents_is_never_sent_to_repair() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.flow > 2:
            raise Exhausted
        yield Emit(Carrier(propose(context)), to="evaluate")

    repaired: list[str] = []

    async def repair(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        repaired.append(item.id)
        for emission in NO_EMISSIONS:
            yield emission

    evaluate = Stage("evaluate", measure, ("update",), repair_to="evaluate")
    algorithm = Small(enter, evaluate, Stage("repair", repair), repair="repair")
    ran = run_small(algorithm, staleness=Reflective())
    assert ran.report.staleness.seen > 0
    assert repaired == []
    assert ran.report.pool.version == 2


@dataclass(frozen=True)
class Release:
    partial: Candidate


def test_a_released_candidate_is_revoked_in_its_own_pool() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(Carrier(propose(context)))

    async def evaluate(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(Release(item.expect(Carrier).candidate))
        await anyio.sleep(1)
        raise Discard("stopped")

    async def update(item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        context.commit([Add(item.expect(Release).partial, "speculative", pool="programs")])
        for emission in NO_EMISSIONS:
            yield emission

    algorithm = Small(once(enter), Stage("evaluate", evaluate, ("update",)), update=update, pools=("main", "programs"))
    ran = run_small(algorithm)
    assert [change.pool for update in ran.report.pool.updates_between(0) for change in update.changes] == [
        "programs"
    ] * 2
    assert list(ran.statuses().values()) == ["revoked"]


def test_a_candidate_in_two_items_outlives_the_first_that_is_discarded() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        candidate = propose(context)
        yield Emit(Carrier(candidate))
        yield Emit(Carrier(candidate))

    async def evaluate(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.id.endswith(".0"):
            raise Discard("this data set timed out")
        await anyio.sleep(1)
        yield Emit(item.payload)

    ran = run_small(Small(once(enter), Stage("evaluate", evaluate, ("update",))))
    assert list(ran.statuses().values()) == ["confirmed"]


def test_a_candidate_ends_with_the_last_item_that_is_about_it() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        candidate = propose(context)
        yield Emit(Carrier(candidate))
        yield Emit(Carrier(candidate))

    async def evaluate(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        raise Discard("no good")
        yield Emit(None)  # type: ignore[unreachable]  # makes it a generator

    ran = run_small(Small(once(enter), Stage("evaluate", evaluate, ("update",))))
    assert list(ran.statuses().values()) == ["rejected"]


def test_a_candidate_ends_though_the_stage_that_sent_it_is_still_at_work() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(Carrier(propose(context)))

    async def pass_on(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(item.payload)
        await anyio.sleep(10)

    async def refuse(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        raise Discard("no good")
        yield Emit(None)  # type: ignore[unreachable]  # makes it a generator

    ran = run_small(Small(once(enter), Stage("evaluate", pass_on, ("update",)), update=refuse))
    assert list(ran.statuses().values()) == ["rejected"]


def test_a_proposal_whose_stage_fails_before_sending_it_is_rejected() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        propose(context)
        yield Emit(Carrier(propose(context)))
        raise Discard("the second call failed")

    ran = run_small(Small(once(enter)))
    assert list(ran.statuses().values()) == ["rejected", "confirmed"]
    assert [e.data["reason"] for e in ran.events if e.kind == "candidate.rejected"] == ["the second call failed"]


@dataclass(frozen=True)
class Pair:
    prompt: Candidate
    program: Candidate

    @property
    def carried(self) -> tuple[Candidate, ...]:
        return self.prompt, self.program


def test_a_payload_can_be_about_several_candidates() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(Pair(propose(context, "prompt"), propose(context, "program")))

    async def evaluate(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        raise Discard("bad program")
        yield Emit(None)  # type: ignore[unreachable]  # makes it a generator

    ran = run_small(Small(once(enter), Stage("evaluate", evaluate, ("update",))))
    assert list(ran.statuses().values()) == ["rejected", "rejected"]


@pytest.mark.parametrize(("after", "becomes"), [("look", "rejected"), ("update", "confirmed")])
def test_a_carried_candidate_counts_as_what_an_item_derives_from(after: str, becomes: str) -> None:
    """Emissions that don't say what they derive from are revoked with their candidate's parents all the same, but for
    those at the stage that commits: their evaluation was paid for, so none of them is too old.
    """

    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        ordinal = item.expect(Ticket).ordinal
        if ordinal == 0:
            yield Emit(Release(propose(context, "parent")), to="update")
            await anyio.sleep(2)
            yield Emit(Carrier(next(context.pool.snapshot().candidates("speculative"))), to="update")
        elif ordinal == 1:
            await anyio.sleep(1)
            parent = next(context.pool.snapshot().candidates("speculative"))
            yield Emit(Carrier(propose(context, "child", [parent])), to="evaluate")
        else:
            raise Exhausted

    async def evaluate(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(10)
        yield Emit(item.payload)

    async def update(item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        if isinstance(item.payload, Release):
            context.commit([Add(item.payload.partial, "speculative")])
        elif not item.expect(Carrier).candidate.parents:
            context.commit([Move(item.expect(Carrier).candidate.id, "revoked")])
        else:
            context.commit([Add(item.expect(Carrier).candidate)])
        for emission in NO_EMISSIONS:
            yield emission

    async def look(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(item.payload)

    between = Stage("evaluate", evaluate, (after,)), Stage("look", look, ("update",))
    two = Small(enter, *between, update=update, entries=2)
    ran = run_small(two, staleness=Guarded(10), width=2)
    assert list(ran.statuses().values()) == ["revoked", becomes]
