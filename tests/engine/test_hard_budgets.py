"""What can be counted before it is done is never exceeded, whatever the algorithm, the mode and the limit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping

import anyio
import pytest
from hypothesis import given, strategies as st

import flowevolve as fe
from bench.simtest.record import Fact, Memory, as_kept
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.budget import Budget, Cost, Dimension, OverBudgetError
from flowevolve.core.calls import CallRecord
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Graph, Stage
from flowevolve.core.item import Item
from flowevolve.core.pool import Candidate
from flowevolve.engine.engine import Engine
from flowevolve.engine.ledger import Ledger
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run, run_plan
from tests.support.depth import examples
from tests.support.interruption import evolve

FORMS: Mapping[str, Mapping[str, object]] = {
    "gepa": {"algorithm": {"name": "gepa"}},
    "gepa, plain": {"preset": "plain", "algorithm": {"name": "gepa", "max_in_flight": 16}},
    "gepa, merging": {"algorithm": {"name": "gepa", "merge": True}},
    "gepa, repairing": {"preset": "careful"},
    "gepa, speculating": {"preset": "flashevolve"},
    "gepa, lockstep": {"preset": "lockstep"},
    "gepa, wide lockstep": {"algorithm": {"name": "gepa", "mode": "sync", "width": 8}},
    "combee": {"algorithm": {"name": "combee", "batch": 4}},
    "ace": {"algorithm": {"name": "ace"}},
}
LIMITS: tuple[tuple[Dimension, int], ...] = (
    ("rollouts", 131),
    ("rollouts", 400),
    ("proposals", 7),
    ("evaluations", 3),
)


def carry_out(form: str, limit: Mapping[str, object], watchers: Watchers | None = None) -> Result:
    table = {"clock": "virtual", **FORMS[form], "budget": {"minutes": 60, **limit}}

    async def go() -> Result:
        return await run(parse_config(table, "test"), watchers=watchers)

    return clock.run(go, clock="virtual")


@pytest.mark.parametrize(("dimension", "limit"), LIMITS)
@pytest.mark.parametrize("form", FORMS)
def test_no_count_is_exceeded(form: str, dimension: Dimension, limit: int) -> None:
    report = carry_out(form, {dimension: limit}).report
    assert report.spent.amount(dimension) <= limit
    assert not report.overshoot


@pytest.mark.parametrize("form", ["gepa, plain", "gepa, wide lockstep"])
def test_what_was_answered_before_a_kill_counts_at_once_when_the_run_goes_on(form: str) -> None:
    """Though it is charged only when the work that was interrupted comes to it again."""
    limit, facts, spent = 60_000, list[Fact](), 0
    carry_out(form, {"tokens": limit}, Watchers((lambda event: facts.append(as_kept(event)),), (facts.append,)))
    kept = list[Fact]()
    for fact in facts:
        kept.append(fact)
        spent += fact.reply.usage.total_tokens if isinstance(fact, CallRecord) and fact.reply is not None else 0
        if spent >= limit:
            break
    table = {"clock": "virtual", **FORMS[form], "budget": {"minutes": 60, "tokens": limit}}
    plan, calls = make_plan(parse_config(table, "test"), ProvidedObjects()), list[CallRecord]()

    async def go_on() -> Result:
        return await run_plan(plan, None, Watchers(calls=(calls.append,)), None, Memory(kept))

    assert clock.run(go_on, clock="virtual").report.stop_reason == "tokens"
    assert calls == []


@pytest.mark.parametrize("form", ["gepa", "gepa, plain", "gepa, lockstep"])
def test_once_the_tokens_are_spent_no_call_is_sent(form: str) -> None:
    calls: list[CallRecord] = []
    limit = 150_000
    spent = carry_out(form, {"tokens": limit}, Watchers(calls=(calls.append,))).report.spent.tokens
    answered = sorted((call.finished, call.reply.usage.total_tokens) for call in calls if call.reply is not None)
    total, full = 0, float("inf")
    for finished, tokens in answered:
        total += tokens
        if total >= limit:
            full = finished
            break
    assert all(call.started <= full for call in calls)
    in_flight = sum(
        call.reply.usage.total_tokens for call in calls if call.reply and call.started <= full < call.finished
    )
    assert spent <= total + in_flight


def test_what_has_no_room_is_not_begun_and_comes_to_no_score() -> None:
    report = carry_out("gepa, plain", {"rollouts": 400}).report
    validations = [candidate.scores for candidate in report.pool.snapshot().candidates()]
    assert len(validations) > 1
    assert {len(scores) for scores in validations} == {90}


@examples(200)
@given(
    limit=st.integers(1, 60),
    works=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 12)), max_size=12),
    estimate=st.integers(0, 6),
)
def test_the_ledger_begins_only_what_there_is_room_for(
    limit: int, works: list[tuple[int, int, int]], estimate: int
) -> None:
    """Flows may always spend what was reserved for them, and more only if nobody else has reserved it."""
    ledger = Ledger(Budget(rollouts=limit))
    opened = [
        flow for flow in range(4) if ledger.refusal(Cost(rollouts=estimate)) is None and _open(ledger, flow, estimate)
    ]
    begun: list[tuple[int, str, Cost, int]] = []
    for number, (flow, wanted, used) in enumerate(works):
        try:
            ledger.begin(flow, f"item {number}", Cost(rollouts=wanted))
        except OverBudgetError:
            assert wanted > (estimate if flow in opened else 0) or any(flow == other for other, *_ in begun)
            continue
        begun.append((flow, f"item {number}", Cost(rollouts=wanted), min(used, wanted)))
    for flow, item, cost, used in begun:
        ledger.charge(flow, Cost(rollouts=used), item)
        ledger.end(item, cost)
    assert ledger.spent.rollouts == sum(used for *_, used in begun) <= limit
    assert not ledger.overshoot()


def _open(ledger: Ledger, flow: int, estimate: int) -> bool:
    ledger.reserve(flow, Cost(rollouts=estimate))
    return True


def test_what_ends_releases_nothing_of_what_is_still_under_way() -> None:
    """A repaired edit and its parent are run side by side, in the work on one item."""
    ledger = Ledger(Budget(rollouts=8))
    for _ in range(2):
        ledger.begin(0, "both", Cost(rollouts=3))
    ledger.charge(0, Cost(rollouts=3), "both")
    ledger.end("both", Cost(rollouts=3))
    ledger.begin(1, "another", Cost(rollouts=2))
    with pytest.raises(OverBudgetError):
        ledger.begin(1, "one more", Cost(rollouts=1))
    ledger.charge(0, Cost(rollouts=3), "both")
    ledger.end("both", Cost(rollouts=3))
    ledger.end("another", Cost(rollouts=2))
    ledger.begin(1, "one more", Cost(rollouts=2))


def test_a_budget_is_only_too_small_for_what_would_not_fit_alone() -> None:
    ledger = Ledger(Budget(rollouts=3))
    with pytest.raises(OverBudgetError) as refused:
        ledger.begin(0, "four", Cost(rollouts=4))
    assert refused.value.alone
    ledger.begin(0, "two", Cost(rollouts=2))
    with pytest.raises(OverBudgetError) as refused:
        ledger.begin(0, "two more", Cost(rollouts=2))
    assert not refused.value.alone
    with pytest.raises(OverBudgetError) as refused:
        ledger.begin(0, "two", Cost(rollouts=2))
    assert refused.value.alone


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_budget_for_some_of_the_first_programs_is_spent_on_those(mode: str) -> None:
    table = {
        "clock": "virtual",
        "algorithm": {"name": "cse", "mode": mode},
        "task": {"name": "program", "problem": "tests.support.problems:Nearest", "cases": 2},
        "sim": {"world": "code"},
        "budget": {"rollouts": 3, "minutes": 60},
    }

    async def go() -> Result:
        return await run(parse_config(table, "test"))

    report = clock.run(go, clock="virtual").report
    assert report.error is None
    assert report.spent.rollouts == 2


class Making(fe.Algorithm):
    """Each of its flows makes one proposal, for which the event loop has to turn once."""

    name = "making"

    def __init__(self) -> None:
        self.archives = ()

    def best(self) -> Candidate | None:
        return None

    def estimate(self, trigger: str | None = None) -> Cost:
        return Cost(proposals=1)

    def graph(self) -> Graph:
        stages = Stage("choose", self._choose, ("make",)), Stage("make", self._make, ("update",), workers=8)
        return Graph((*stages, CommittingStage("update", self._update)), entry="choose")

    async def _choose(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(item.id)

    async def _make(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        with context.reserved(Cost(proposals=1)):
            await anyio.lowlevel.checkpoint()
            context.spend(Cost(proposals=1))
        yield Emit(item.id)

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        for emission in NO_EMISSIONS:
            yield emission


def cut_off(after: int, budget: Budget) -> list[Fact]:
    """The events of a run that is cancelled by whoever awaits it, after so many of them."""
    facts: list[Fact] = []

    async def go() -> None:
        with anyio.CancelScope() as scope:

            def watch(event: Event) -> None:
                facts.append(as_kept(event))
                if len(facts) == after:
                    scope.cancel()

            client = LLMClient({}, Scheduler(1), RetryPolicy(), 0, lambda record: None)
            await Engine(Making(), llm=client, budget=budget, sinks=[watch]).run()

    clock.run(go, clock="virtual")
    return facts


def test_what_cancelled_work_had_reserved_is_not_given_to_others() -> None:
    """It will need it again when the run goes on."""
    budget = Budget(proposals=4)
    _, whole = evolve(Making(), budget=budget)
    for after in range(1, len(whole)):
        report, _ = evolve(Making(), cut_off(after, budget), budget=budget)
        assert report.spent.proposals == 4, after


class Keeping(Making):
    """Ends with proposals of its own, a quarter of what may be made."""

    made_at_end = 0

    def reserve_for_finish(self, share_of: Callable[[Cost], float]) -> Cost:
        return Cost(proposals=2) if share_of(Cost(proposals=2)) == 0.25 else Cost()

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        with context.reserved(Cost(proposals=2)):
            context.spend(Cost(proposals=2))
        self.made_at_end = 2
        for emission in NO_EMISSIONS:
            yield emission


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_what_is_kept_for_the_end_is_spent_by_nothing_else(mode: str) -> None:
    keeping = Keeping()
    report, _ = evolve(keeping, budget=Budget(proposals=8), mode=mode)
    assert (report.spent.proposals, keeping.made_at_end) == (8, 2)
