"""What a stage at work can rely on: queues that take what is sent back, calls in order, and word of the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.acts import Veto
from flowevolve.core.budget import Budget, Cost
from flowevolve.core.calls import CallRecord
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, Discard, Emit, Exhausted, Stage
from flowevolve.core.item import Item, Ticket
from flowevolve.core.model import Message
from flowevolve.core.pool import Add
from flowevolve.engine.contract import Mode
from flowevolve.engine.engine import Engine
from flowevolve.engine.recovery.state import Start
from tests.support import interruption
from tests.support.small_runs import Carrier, Small, consume, no_work, once, propose, run_small


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_full_queue_takes_what_a_later_stage_sends_back(mode: Mode) -> None:
    """Else both would wait for each other: the earlier one for room at the later, and the other way round."""
    done: list[object] = []

    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit("new", to="first")

    async def first(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(item.payload)

    async def second(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        done.append(item.payload)
        for _ in range(8 if item.payload == "new" else 0):
            yield Emit("again", to="first")

    stages = Stage("first", first, ("second",), capacity=1), Stage("second", second, ("first",), capacity=1)
    ran = run_small(Small(once(enter), *stages, update=consume), mode=mode, width=1)
    assert done == ["new"] + ["again"] * 8
    assert ran.count("item.held") == 0


def test_a_stage_is_told_when_the_run_stops() -> None:
    told: list[bool] = []

    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        told.append(context.stopping)
        await anyio.sleep(2)
        told.append(context.stopping)
        raise Discard("done")
        yield Emit(None)  # type: ignore[unreachable]  # makes it a generator

    async def stop(engine: Engine) -> None:
        await anyio.sleep(1)
        engine.stop()

    run_small(Small(enter), width=1, meanwhile=stop)
    assert told == [False, True]


def test_calls_of_later_stages_are_more_urgent() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.expect(Ticket).ordinal:
            raise Exhausted
        await context.chat_model("task", "c")([Message("user", "a")])
        yield Emit(None)

    async def ask(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        await context.chat_model("task", "c")([Message("user", "b")])
        yield Emit(None)

    async def finish(context: UpdateContext) -> AsyncGenerator[Emit]:
        await context.chat_model("task", "c")([Message("user", "c")])
        yield Emit(None, to="update")

    algorithm = Small(enter, Stage("second", ask, ("update",)), update=consume, finish=finish)  # type: ignore[arg-type]  # no stage is handed the context of finish
    _, facts = interruption.evolve(algorithm, roles=interruption.echo)
    ranks = {fact.scope.stage: fact.scope.priority for fact in facts if isinstance(fact, CallRecord)}
    assert ranks["entry"] > ranks["second"] > 0
    assert ranks["entry"] - ranks["second"] == 2, "between them there is room for what is less urgent at a stage"


def test_a_run_starts_from_the_pool_of_another() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.expect(Ticket).ordinal:
            raise Exhausted
        parent = next(context.pool.snapshot().candidates())
        yield Emit(Carrier(propose(context, "child", [parent])), to="update")

    first = run_small(Small(no_work, init=one_candidate))
    (seed,) = first.report.pool.snapshot().candidates()
    start = Start([seed], [[Add(seed)]], flows=7)
    report, facts = interruption.evolve(Small(enter, init=one_candidate), budget=Budget(seconds=100), start=start)
    assert [each.id for each in report.pool.snapshot().candidates()] == [seed.id, "c8"]
    assert [event.data["phase"] for event in interruption.events_of(facts, "phase.ended")] == ["init", "finish"]
    assert [event.data["flow"] for event in interruption.events_of(facts, "flow.open")][:2] == [7, 8]


def test_a_budget_in_which_the_first_work_has_no_room_is_the_users_mistake() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        context.begin(Cost(evaluations=4))
        yield Emit(None, to="update")

    error = run_small(Small(enter, update=consume), budget=Budget(evaluations=3), width=1).report.error
    assert isinstance(error, InputError)
    said = "budget.evaluations is too small to evaluate what the run begins with; give at least 4"
    assert str(error) == said


def test_work_for_which_nothing_is_left_stops_the_run() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        context.begin(Cost(evaluations=2))
        yield Emit(None, to="update")

    ran = run_small(Small(enter, update=consume), budget=Budget(evaluations=3), width=1)
    assert (ran.report.stop_reason, ran.report.spent.evaluations) == ("evaluations", 2)
    assert [event.data["needed"] for event in ran.events if event.kind == "budget.refused"] == [4]


@pytest.mark.parametrize(("seconds", "held", "reason"), [(5, 0, "exhausted"), (100, 1, "stopped")])
def test_a_run_that_was_ending_is_stopped_only_if_work_was_cut_off(seconds: float, held: int, reason: str) -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.expect(Ticket).ordinal:
            raise Exhausted
        await anyio.sleep(seconds)
        yield Emit(None, to="update")

    async def stop(engine: Engine) -> None:
        await anyio.sleep(1)
        engine.stop()

    report = run_small(Small(enter, update=consume, entries=2), width=2, meanwhile=stop).report
    assert (report.held, report.stop_reason) == (held, reason)


def test_past_its_last_change_a_run_takes_no_veto() -> None:
    refused: list[str] = []

    async def finish(context: StageContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(10)
        yield Emit(None, to="update")

    async def veto(engine: Engine) -> None:
        await anyio.sleep(5)
        (seed,) = engine.pool.snapshot().candidates()
        try:
            await engine.act(Veto(candidate=seed.id), "ada")
        except InputError as error:
            refused.append(str(error))

    async def update(item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        if isinstance(item.payload, Carrier):
            context.commit([Add(item.payload.candidate)])
        for emission in NO_EMISSIONS:
            yield emission

    run_small(Small(no_work, update=update, init=one_candidate, finish=finish), meanwhile=veto)
    assert refused == [
        "veto: the run is ending, and its candidates no longer change; resume it, or branch from another one"
    ]


async def one_candidate(context: StageContext) -> AsyncGenerator[Emit]:
    yield Emit(Carrier(propose(context, "seed")), to="update")
