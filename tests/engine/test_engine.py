"""The engine's invariants over random graphs, on the virtual clock."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve._util.errors import EngineError, InputError, TaskFailedError
from flowevolve.core.budget import Budget, Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import (
    NO_EMISSIONS,
    AnyStage,
    CommittingStage,
    Emit,
    Graph,
    Stage,
    StageFunction,
    Trigger,
)
from flowevolve.core.item import Gathered, Item
from flowevolve.core.policies import StalenessPolicy, StoppingPolicy
from flowevolve.core.pool import Note
from flowevolve.engine.contract import Mode
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from flowevolve.policies.staleness import Full, Guarded
from flowevolve.policies.stopping import NoImprovement
from tests.support.depth import examples
from tests.support.small_runs import Small, run_small
from tests.support.toy_algorithm import BUG, Buggy, Plan, Toy, no_llm, plans
from tests.support.triggers import EveryCommits, Stagnation


@dataclass
class Outcome:
    report: RunReport
    events: list[Event]
    algorithm: Toy


def run_toy(
    algorithm: Toy,
    *,
    budget: Budget,
    mode: Mode = "stream",
    width: int = 4,
    staleness: StalenessPolicy | None = None,
    stopping: Sequence[StoppingPolicy] = (),
    seed: int = 0,
    drain_seconds: float = 30.0,
) -> Outcome:
    events: list[Event] = []

    async def go() -> RunReport:
        engine = Engine(
            algorithm,
            llm=no_llm(),
            budget=budget,
            mode=mode,
            max_in_flight=width,
            staleness=staleness,
            stopping=stopping,
            seed=seed,
            drain_seconds=drain_seconds,
            sinks=[events.append],
        )
        return await engine.run()

    return Outcome(clock.run(go, clock="virtual"), events, algorithm)


def fitting(plans: Sequence[Plan], width: int) -> list[Plan]:
    """The plans with nothing gathered that can't be in flight."""
    return [replace(plan, gather=min(plan.gather, width)) for plan in plans]


def assert_all_accounted(outcome: Outcome) -> None:
    """Invariant 1, from the event log alone."""
    born: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    held: set[str] = set()
    for event in outcome.events:
        match event.kind:
            case "flow.open":
                born[str(event.data["flow"])] += 1
            case "item.sent":
                born[str(event.data["item"])] += 1
            case "item.done":
                assert event.data["outcome"] in ("consumed", "discarded")
                assert event.data["outcome"] == "consumed" or event.data["reason"]
                ended[str(event.data["item"])] += 1
            case "item.held":
                held.add(str(event.data["item"]))
    assert set(born.values()) <= {1}
    assert set(ended.values()) <= {1}
    assert set(born) == set(ended) | held
    assert not set(ended) & held
    assert outcome.report.held == len(held)


@examples(60)
@given(plans=plans, mode=st.sampled_from(["stream", "sync"]), width=st.integers(1, 6), seconds=st.integers(1, 60))
def test_every_item_ends_in_exactly_one_way(plans: list[Plan], mode: Mode, width: int, seconds: int) -> None:
    budget = Budget(seconds=seconds, rollouts=200)
    assert_all_accounted(run_toy(Toy(fitting(plans, width)), budget=budget, mode=mode, width=width, drain_seconds=2.0))


@examples(30)
@given(plans=plans, width=st.integers(1, 6), seed=st.integers(0, 5))
def test_same_seed_gives_the_same_events(plans: list[Plan], width: int, seed: int) -> None:
    """Invariant 6."""
    first, second = (
        [event.to_json() for event in run_toy(toy, budget=Budget(rollouts=60), width=width, seed=seed).events]
        for toy in (Toy(fitting(plans, width)), Toy(fitting(plans, width)))
    )
    assert first == second


@examples(40)
@given(plans=plans, width=st.integers(1, 6), limit=st.integers(1, 60))
def test_overshoot_is_at_most_the_work_in_flight(plans: list[Plan], width: int, limit: int) -> None:
    """Invariant 4: after the limit was reached no flow opens, and the report tells the overshoot."""
    outcome = run_toy(Toy(fitting(plans, width)), budget=Budget(rollouts=limit, seconds=10_000), width=width)
    spent = outcome.report.spent.rollouts
    assert outcome.report.overshoot.get("rollouts", 0) == max(0, spent - limit)
    opened = [e for e in outcome.events if e.kind == "flow.open" and e.data["stage"] == "entry"]
    if all(plan.gather == 1 for plan in plans):  # gathered flows share one expense, so more of them fit
        assert len(opened) <= limit
    if outcome.report.stop_reason == "rollouts":
        stopping = next(event.seq for event in outcome.events if event.kind == "run.stopping")
        assert all(event.seq < stopping for event in opened)


@examples(40)
@given(plans=plans, seed=st.integers(0, 5))
def test_at_width_one_stream_and_lockstep_decide_alike(plans: list[Plan], seed: int) -> None:
    """Invariant 7."""
    single = [Plan(p.seconds, p.fan_out, p.discard, 1, p.capacity, 1) for p in plans]
    budget = Budget(rollouts=40)
    decisions = []
    for mode in ("stream", "sync"):
        outcome = run_toy(Toy(single), budget=budget, mode=mode, width=1, seed=seed)
        commits = [event.data for event in outcome.events if event.kind == "pool.commit"]
        decisions.append([(commit["changes"], commit["best"]) for commit in commits])
    assert decisions[0] == decisions[1]


def test_a_gathering_stage_gets_full_batches_and_the_rest_at_the_end() -> None:
    sizes: list[int] = []

    class Gathering(Toy):
        async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
            context.commit([Note("n", {})])
            for emission in NO_EMISSIONS:
                yield emission

        def _step(self, plan: Plan) -> StageFunction:
            async def gathered(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
                sizes.append(len(item.expect(Gathered).items))
                yield Emit(None)

            return gathered

    run_toy(Gathering([Plan(gather=3, capacity=8)], most=7), budget=Budget(seconds=100), width=8)
    assert sizes == [3, 3, 1]


@pytest.mark.parametrize(("mode", "setting"), [("stream", "max_in_flight"), ("sync", "width")])
def test_gathering_more_than_may_be_in_flight_is_refused(mode: Mode, setting: str) -> None:
    with pytest.raises(InputError, match=rf"{setting} is .*at least 3.*'s0' gathers 3"):
        run_toy(Toy([Plan(gather=3)], most=4), budget=Budget(seconds=100), mode=mode, width=2)


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (EveryCommits("every", "extra", 4), 2),
        (Stagnation("stuck", "extra", 3), 2),
    ],
)
def test_triggers_start_flows_of_their_own(trigger: Trigger, expected: int) -> None:
    toy = Toy([Plan(seconds=1.0)], triggers=(trigger,), most=40)
    run_toy(toy, budget=Budget(seconds=1000), width=1, seed=3)
    assert len(toy.triggered) >= expected


def test_a_full_queue_holds_back_without_deadlock() -> None:
    slow_end = [Plan(seconds=0.0, fan_out=3, workers=4, capacity=1), Plan(seconds=50.0, capacity=1)]
    outcome = run_toy(Toy(slow_end, most=5), budget=Budget(seconds=10_000), width=5)
    assert outcome.report.stop_reason == "exhausted"
    assert outcome.report.stages["s1"].counts.consumed == 15


def test_guarded_discards_what_is_too_old() -> None:
    plans = [Plan(seconds=10.0, workers=8, capacity=8)]
    guarded = run_toy(Toy(plans), budget=Budget(seconds=100), width=8, staleness=Guarded(max_gap=1))
    full = run_toy(Toy(plans), budget=Budget(seconds=100), width=8, staleness=Full())
    assert guarded.report.staleness.discarded > 0
    assert guarded.report.staleness.discarded == guarded.report.stages["update"].counts.reasons["stale"]
    assert full.report.staleness.discarded == 0
    assert full.report.staleness.seen > 0
    assert_all_accounted(guarded)


def test_the_time_limit_stops_and_the_drain_limit_cuts_off() -> None:
    outcome = run_toy(Toy([Plan(seconds=100.0, workers=4)]), budget=Budget(seconds=30), drain_seconds=5.0)
    assert outcome.report.stop_reason == "seconds"
    assert outcome.report.wall_seconds == pytest.approx(35.0)
    assert outcome.report.held > 0
    assert_all_accounted(outcome)


def test_target_score_and_stopping_policies_stop() -> None:
    assert run_toy(Toy([Plan()]), budget=Budget(target_score=0.9)).report.stop_reason == "target_score"

    class Proposing(Toy):
        async def _enter(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
            context.spend(Cost(proposals=1))
            yield Emit(None)

    outcome = run_toy(Proposing([Plan()]), budget=Budget(seconds=1e6), stopping=[NoImprovement(20)])
    assert outcome.report.stop_reason == "no_improvement"


def test_a_failure_no_item_can_get_past_ends_the_run_and_keeps_what_was_done() -> None:
    class Failing(Toy):
        async def _enter(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
            if item.flow == 5:
                raise TaskFailedError("broken")
            yield Emit(None)

    outcome = run_toy(Failing([Plan()]), budget=Budget(seconds=1000), width=1)
    assert outcome.report.stop_reason == "failed"
    assert isinstance(outcome.report.error, TaskFailedError)
    assert outcome.report.pool.version == 4
    assert_all_accounted(outcome)


def test_a_bug_in_a_stage_is_told_with_its_place_and_noted_as_a_failure() -> None:
    events: list[Event] = []

    async def go() -> None:
        engine = Engine(Buggy([Plan()]), llm=no_llm(), budget=Budget(seconds=10), sinks=[events.append])
        with pytest.raises(EngineError, match=BUG) as caught:
            await engine.run()
        assert [event.data["error"] for event in events if event.kind == "run.failed"] == [str(caught.value)]
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert (engine.report.error, engine.report.stop_reason) == (caught.value, "failed")

    clock.run(go, clock="virtual")
    assert events[-1].kind == "run.stop"


async def cancelled_entry(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    raise asyncio.CancelledError
    yield Emit(None)  # type: ignore[unreachable]  # makes it a generator


def test_a_stage_that_raises_cancelled_error_though_nobody_cancelled_it_is_a_bug_too() -> None:
    """Its worker would be gone without a word, and what it worked on would never end."""
    with pytest.raises(EngineError, match=r"^stage 'entry' .*: it raised CancelledError, but nobody .*\.py, line \d+"):
        run_small(Small(cancelled_entry))


def test_graphs_that_make_no_sense_are_refused() -> None:
    def stage(name: str, *to: str, commits: bool = False, workers: int = 1) -> AnyStage:
        return (CommittingStage if commits else Stage)(name, Toy([])._enter, to, workers)

    with pytest.raises(EngineError, match="same name"):
        Graph((stage("a"), stage("a", commits=True)), entry="a")
    with pytest.raises(EngineError, match="'b'"):
        Graph((stage("a", "b", commits=True),), entry="a")
    with pytest.raises(EngineError, match="exactly one stage"):
        Graph((stage("a"),), entry="a")
    with pytest.raises(EngineError, match="one worker"):
        Graph((stage("a", commits=True, workers=2),), entry="a")
