"""The engine's invariants over random graphs, on the virtual clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import anyio
import pytest
from hypothesis import given, strategies as st

from flowevolve._util import clock
from flowevolve._util.errors import EngineError, InputError, TaskFailedError
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Budget, Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import (
    NO_EMISSIONS,
    AnyStage,
    CommittingStage,
    Discard,
    Emit,
    Exhausted,
    Graph,
    Stage,
    StageFunction,
    Trigger,
)
from flowevolve.core.item import Gathered, Item
from flowevolve.core.policies import StalenessPolicy, StoppingPolicy
from flowevolve.core.pool import Add, Candidate, Note, Update
from flowevolve.engine.contract import Mode
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.policies.staleness import Full, Guarded
from flowevolve.policies.stopping import NoImprovement
from tests.support.depth import examples
from tests.support.triggers import EveryCommits, Stagnation


@dataclass(frozen=True)
class Plan:
    """How one stage of a toy graph behaves; everything else is drawn from the item's own generator."""

    seconds: float = 1.0
    fan_out: int = 1
    discard: float = 0.0
    workers: int = 1
    capacity: int = 2
    gather: int = 1


@dataclass
class BestArchive:
    best: Candidate | None = None
    log: list[int] = field(default_factory=list)

    def apply(self, update: Update) -> None:
        self.log.append(update.version)
        for candidate in update.added():
            if self.best is None or candidate.mean_score > self.best.mean_score:
                self.best = candidate


class Toy(Algorithm):
    """A chain of stages that take time, branch and discard, then an update that adds a candidate with a random score."""

    name = "toy"

    def __init__(
        self, plans: Sequence[Plan], *, triggers: tuple[Trigger, ...] = (), most: int | None = None, cost: int = 1
    ) -> None:
        self._plans = plans
        self._triggers = triggers
        self._most = most
        self._cost = cost
        self.archive = BestArchive()
        self.archives = (self.archive,)
        self.triggered: list[str] = []

    def best(self) -> Candidate | None:
        return self.archive.best

    def estimate(self, trigger: str | None = None) -> Cost:
        return Cost(rollouts=self._cost)

    def graph(self) -> Graph:
        names = ["entry", *(f"s{n}" for n in range(len(self._plans))), "update"]
        stages: list[AnyStage] = [Stage("entry", self._enter, (names[1],))]
        for number, plan in enumerate(self._plans):
            stages.append(
                Stage(
                    names[number + 1], self._step(plan), (names[number + 2],), plan.workers, plan.capacity, plan.gather
                )
            )
        stages.append(CommittingStage("update", self._update))
        stages.append(Stage("extra", self._extra))
        return Graph(tuple(stages), entry="entry", triggers=self._triggers)

    async def _enter(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if self._most is not None and item.flow > self._most:
            raise Exhausted
        yield Emit(item.flow, version=context.pool.version)

    def _step(self, plan: Plan) -> StageFunction:
        async def step(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
            context.spend(Cost(rollouts=self._cost))
            await anyio.sleep(plan.seconds * context.random.random())
            if context.random.random() < plan.discard:
                raise Discard("unlucky")
            for number in range(plan.fan_out):
                yield Emit(number)

        return step

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        candidate = context.propose(Artifact({"text": item.id}), parents=[], operator="toy")
        context.commit([Add(candidate.scored({"x": context.random.random()}))])
        for emission in NO_EMISSIONS:
            yield emission

    async def _extra(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        self.triggered.append(item.id)
        for emission in NO_EMISSIONS:
            yield emission


@dataclass
class Outcome:
    report: RunReport
    events: list[Event]
    algorithm: Toy


def no_llm() -> LLMClient:
    return LLMClient({}, Scheduler(1), RetryPolicy(), 0, lambda record: None)


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


plans = st.lists(
    st.builds(
        Plan,
        seconds=st.sampled_from([0.0, 1.0, 10.0]),
        fan_out=st.integers(0, 3),
        discard=st.sampled_from([0.0, 0.3]),
        workers=st.integers(1, 4),
        capacity=st.integers(1, 3),
        gather=st.integers(1, 3),
    ),
    min_size=1,
    max_size=4,
)


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


class Buggy(Toy):
    async def _enter(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        raise ZeroDivisionError("no")
        yield Emit(None)  # type: ignore[unreachable]  # makes it a generator


BUG = r"^stage 'entry' of algorithm 'toy', item 1: ZeroDivisionError: no \(test_engine\.py, line \d+\)$"


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


@pytest.mark.parametrize("following", [True, False])
def test_a_bug_in_a_stage_ends_the_open_form(following: bool) -> None:
    async def go() -> None:
        async with Engine(Buggy([Plan()]), llm=no_llm(), budget=Budget(seconds=10)) as engine:
            async for _ in engine.events():
                if not following:
                    await anyio.sleep_forever()

    with pytest.raises(EngineError, match=BUG):
        clock.run(go, clock="virtual")


def test_the_open_form_yields_events_and_can_stop() -> None:
    async def go() -> tuple[list[str], RunReport]:
        engine = Engine(Toy([Plan()]), llm=no_llm(), budget=Budget(seconds=1e6), max_in_flight=2)
        kinds: list[str] = []
        async with engine:
            async for event in engine.events():
                kinds.append(event.kind)
                if event.kind == "pool.commit" and kinds.count("pool.commit") == 3:
                    engine.stop("enough")
        return kinds, engine.report

    kinds, report = clock.run(go, clock="virtual")
    assert kinds[0] == "run.start"
    assert kinds[-1] == "run.stop"
    assert report.stop_reason == "enough"


def test_a_caller_may_leave_the_events_early() -> None:
    async def go() -> RunReport:
        engine = Engine(Toy([Plan()], most=20), llm=no_llm(), budget=Budget(seconds=1e6), max_in_flight=2)
        async with engine, aclosing(engine.events()) as events:
            async for event in events:
                if event.kind == "pool.commit":
                    break
        return engine.report

    report = clock.run(go, clock="virtual")
    assert report.stop_reason == "exhausted"
    assert report.pool.version == 20


def test_a_caller_that_comes_after_the_end_has_nothing_to_pause() -> None:
    """One who reads events slowly may only learn of a commit when the run is over."""

    async def go() -> list[str]:
        engine = Engine(Toy([Plan()], most=20), llm=no_llm(), budget=Budget(seconds=1e6), max_in_flight=2)
        kinds: list[str] = []
        async with engine:
            async for event in engine.events():
                if event.kind == "pool.commit":
                    await anyio.sleep(10_000)
                    engine.pause()
                    engine.unpause()
                kinds.append(event.kind)
        return kinds

    kinds = clock.run(go, clock="virtual")
    assert kinds[-1] == "run.stop"
    assert "run.paused" not in kinds


def test_a_caller_that_falls_behind_is_told() -> None:
    async def go() -> None:
        engine = Engine(Toy([Plan()], most=20), llm=no_llm(), budget=Budget(seconds=1e6), max_in_flight=2)
        async with engine:
            async for _ in engine.events(buffer=3):
                await anyio.sleep(5)

    with pytest.raises(EngineError, match="behind"):
        clock.run(go, clock="virtual")


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
