"""What becomes of flows and their items, in small graphs on the virtual clock."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio
import pytest
from structlog.contextvars import get_contextvars

from flowevolve._util.errors import EngineError
from flowevolve.core.algorithm import Tuning, Workers, WorkersWanted
from flowevolve.core.budget import Budget, Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import (
    NO_EMISSIONS,
    Emit,
    Exhausted,
    NotYet,
    Stage,
    StageFunction,
)
from flowevolve.core.item import Gathered, Item, Ticket
from flowevolve.core.pool import Note
from flowevolve.engine.contract import Mode
from flowevolve.engine.engine import Engine
from flowevolve.policies.flows import AutoFlows
from tests.support.small_runs import (
    Carrier,
    Phase,
    Small,
    consume,
    five_plans,
    no_work,
    propose,
    run_small,
)
from tests.support.triggers import EveryCommits


async def commit(item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
    context.commit([Note("n", {})])
    for emission in NO_EMISSIONS:
        yield emission


def entry(flows: int, ran: list[str], seconds: float = 1.0) -> StageFunction:
    """So many flows that take some time; their tickets' numbers are kept."""

    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        ordinal = item.expect(Ticket).ordinal
        if ordinal >= flows:
            raise Exhausted
        ran.append(f"entry{ordinal}")
        await anyio.sleep(seconds)
        yield Emit(None, to="update")

    return enter


def extra(ran: list[str], commits: int = 0) -> Stage:
    """The stage of a trigger; its tickets' numbers are kept."""

    async def run(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        ran.append(f"extra{item.expect(Ticket).ordinal}")
        for number in range(commits):
            yield Emit(number, to="update")

    return Stage("extra", run, ("update",))


def test_what_init_sets_off_does_not_count() -> None:
    async def init(context: StageContext) -> AsyncGenerator[Emit]:
        for number in range(6):
            yield Emit(number, to="update")

    ran: list[str] = []
    trigger = EveryCommits("every", "extra", 3)
    result = run_small(Small(entry(2, ran), extra(ran), update=commit, init=init, triggers=(trigger,)))
    assert ran == ["entry0", "entry1"]
    assert result.count("trigger.fired") == 0


def test_a_trigger_that_fires_all_the_time_takes_turns_with_ordinary_flows() -> None:
    ran: list[str] = []
    algorithm = Small(
        entry(4, ran), extra(ran, commits=3), update=commit, triggers=(EveryCommits("every", "extra", 1),)
    )
    run_small(algorithm, width=1)
    assert ran == ["entry0", "extra0", "entry1", "extra1", "entry2", "extra2", "entry3", "extra3", "extra4"]


@pytest.mark.parametrize(("mode", "width"), [("sync", 1), ("stream", 8)])
def test_what_the_last_flows_set_off_is_still_run(mode: Mode, width: int) -> None:
    ran: list[str] = []
    algorithm = Small(
        entry(6, ran), extra(ran, commits=3), update=commit, triggers=(EveryCommits("every", "extra", 6),)
    )
    result = run_small(algorithm, mode=mode, width=width)
    assert ran.count("extra0") == 1
    assert result.report.stop_reason == "exhausted"
    assert result.count("trigger.fired") == sum(name.startswith("extra") for name in ran)


def test_no_triggered_flow_is_opened_once_somebody_asked_to_stop() -> None:
    ran: list[str] = []

    async def stop(engine: Engine) -> None:
        await anyio.sleep(0.5)
        engine.stop()

    algorithm = Small(entry(9, ran), extra(ran), update=commit, triggers=(EveryCommits("every", "extra", 1),))
    run_small(algorithm, width=1, meanwhile=stop)
    assert ran == ["entry0"]


def test_an_entry_stage_with_nothing_to_do_waits_for_a_commit_or_the_end_of_a_flow() -> None:
    asked: list[float] = []

    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        asked.append(anyio.current_time())
        if len(asked) > 20:
            raise Exhausted
        if item.flow > 1 and context.pool.version == 0:
            raise NotYet
        yield Emit(None)

    async def work(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(10)
        yield Emit(None)

    result = run_small(Small(enter, Stage("work", work, ("update",)), update=commit))
    assert len([time for time in asked if time < 10]) <= 4
    assert result.report.stop_reason == "exhausted"
    assert result.report.stages["entry"].counts.discarded == 0


@pytest.mark.parametrize("mode", ["sync", "stream"])
def test_a_run_in_which_nothing_can_change_has_stalled(mode: Mode) -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        raise NotYet
        yield Emit(None)  # type: ignore[unreachable]  # makes it a generator

    ran = run_small(Small(enter), mode=mode)
    assert ran.report.stop_reason == "stalled"
    assert ran.report.wall_seconds == 0


def test_only_a_flow_that_was_not_begun_can_be_too_early() -> None:
    async def update(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        raise NotYet
        yield Emit(None)  # type: ignore[unreachable]  # makes it a generator

    with pytest.raises(EngineError, match="NotYet"):
        run_small(Small(entry(1, []), update=update))


def test_a_triggered_flow_has_an_estimate_of_its_own() -> None:
    class Dear(Small):
        def estimate(self, trigger: str | None = None) -> Cost:
            return Cost(rollouts=1 if trigger is None else 1000)

    ran: list[str] = []
    algorithm = Dear(entry(3, ran), extra(ran), update=commit, triggers=(EveryCommits("every", "extra", 1),))
    run_small(algorithm, width=1, budget=Budget(rollouts=10))
    assert ran == ["entry0", "entry1", "entry2"]


def slow_finish(seconds: float, begun: list[float]) -> Phase:
    async def finish(context: StageContext) -> AsyncGenerator[Emit]:
        begun.append(anyio.current_time())
        yield Emit(seconds, to="final")

    return finish


async def wait(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    await anyio.sleep(item.expect(float))
    for emission in NO_EMISSIONS:
        yield emission


def test_records_that_fit_makes_do_not_name_the_item_that_was_worked_on_before_it() -> None:
    bound: list[dict[str, object]] = []

    class Fitting(Small):
        async def fit(self, context: UpdateContext) -> None:
            bound.append(get_contextvars())

    async def init(context: StageContext) -> AsyncGenerator[Emit]:
        bound.append(get_contextvars())
        for emission in NO_EMISSIONS:
            yield emission

    run_small(Fitting(no_work, init=init))
    before, after = bound
    assert before["stage"] == "init"
    assert not after.keys() & {"stage", "item"}


@pytest.mark.parametrize("mode", ["sync", "stream"])
def test_finish_runs_when_the_drain_was_cut_off(mode: Mode) -> None:
    begun: list[float] = []
    algorithm = Small(entry(9, [], seconds=500), Stage("final", wait), update=commit, finish=slow_finish(10.0, begun))
    ran = run_small(algorithm, mode=mode, budget=Budget(seconds=100), width=2)
    assert begun == [pytest.approx(130)]
    assert ran.report.wall_seconds == pytest.approx(140)
    assert ran.report.stages["final"].counts.consumed == 1
    assert ran.report.held == ran.count("item.held") > 0


@pytest.mark.parametrize("mode", ["sync", "stream"])
def test_finish_has_the_drain_time_once_time_is_up(mode: Mode) -> None:
    begun: list[float] = []
    algorithm = Small(entry(1, []), Stage("final", wait), update=commit, finish=slow_finish(10_000.0, begun))
    ran = run_small(algorithm, mode=mode, budget=Budget(seconds=100), width=2)
    assert begun == [pytest.approx(1)]
    assert ran.report.wall_seconds == pytest.approx(130)
    assert ran.report.held == 1


def test_cancelling_skips_finish() -> None:
    begun: list[float] = []

    async def cancel(engine: Engine) -> None:
        await anyio.sleep(5)
        engine.cancel()

    algorithm = Small(entry(9, [], seconds=500), Stage("final", wait), finish=slow_finish(1.0, begun))
    ran = run_small(algorithm, meanwhile=cancel)
    assert begun == []
    assert ran.report.wall_seconds == pytest.approx(5)


def test_a_phase_can_save_rollouts() -> None:
    async def init(context: StageContext) -> AsyncGenerator[Emit]:
        context.save(3)
        for emission in NO_EMISSIONS:
            yield emission

    assert run_small(Small(no_work, init=init)).report.racing.rollouts_saved == 3


def gathering(name: str, to: str, sizes: list[tuple[str, int]]) -> Stage:
    async def run(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        sizes.append((name, len(item.expect(Gathered).items)))
        await anyio.sleep(1)
        yield Emit(None)

    return Stage(name, run, (to,), gather=4)


def test_a_gathering_stage_is_flushed_only_when_no_earlier_one_can_send_it_more() -> None:
    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        ordinal = item.expect(Ticket).ordinal
        if ordinal >= 5:
            raise Exhausted
        yield Emit(None, to="first" if ordinal < 2 else "second")

    sizes: list[tuple[str, int]] = []
    stages = gathering("first", "second", sizes), gathering("second", "update", sizes)
    run_small(Small(enter, *stages, update=consume), width=8)
    assert sizes == [("first", 2), ("second", 4)]


@pytest.mark.parametrize("mode", ["sync", "stream"])
def test_an_exclusive_stage_works_on_one_item_at_a_time(mode: Mode) -> None:
    running: list[str] = []
    most: list[int] = []

    async def benchmark(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        running.append(item.id)
        most.append(len(running))
        await anyio.sleep(1)
        running.remove(item.id)
        yield Emit(item.payload)

    stage = Stage("benchmark", benchmark, ("update",), exclusive=True)
    run_small(Small(no_work, stage, init=five_plans("benchmark")), mode=mode)
    assert most == [1] * 5


@pytest.mark.parametrize("more", [{"workers": 2}, {"bounds": (1, 4)}])
def test_an_exclusive_stage_has_one_worker_for_good(more: dict[str, object]) -> None:
    with pytest.raises(EngineError, match="exclusive"):
        replace(Stage("benchmark", consume, exclusive=True), **more)  # type: ignore[arg-type]


def test_flows_and_workers_follow_machines_that_come_and_go() -> None:
    """Beyond the bounds of the stage, and back to what it began with."""
    open_now = {"rollouts": 0}
    seen: dict[str, int] = {}

    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(Carrier(propose(context, str(item.flow))), to="evaluate")

    async def evaluate(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        open_now["rollouts"] += 1
        await anyio.sleep(1)
        context.spend(Cost(rollouts=1))
        open_now["rollouts"] -= 1
        yield Emit(item.payload)

    algorithm = Small(enter, Stage("evaluate", evaluate, ("update",), workers=4, bounds=(1, 8), grows=True))

    async def machines(engine: Engine) -> None:
        for name, there in (("few", [2]), ("many", [20, 20]), ("fewer", [2])):
            algorithm.machines = there
            await anyio.sleep(50.5)
            seen[name] = open_now["rollouts"]

    ran = run_small(algorithm, budget=Budget(seconds=160), width=AutoFlows(), meanwhile=machines, calls=64)
    assert seen == {"few": 4, "many": 41, "fewer": 4}
    moves = [event.data for event in ran.events if event.kind == "allocation.changed"]
    assert [(move["by"], move["workers"]) for move in moves] == [(37, 41), (-37, 4)]
    assert "40 items at a time" in str(moves[0]["reason"])
    limits = [event.data["flows"] for event in ran.events if event.kind == "flows.limited"]
    assert limits == [16, 80, 16]


def test_workers_that_a_user_set_stay_as_they_are() -> None:
    tuning = Tuning({"evaluate": WorkersWanted(start=4), "write": WorkersWanted(least=2)})
    by_stage = tuning.workers_of({name: Workers(16) for name in ("evaluate", "write", "select")}).by_stage
    assert {name: workers.grows for name, workers in by_stage.items()} == {
        "evaluate": False,
        "write": True,
        "select": True,
    }
