"""What can be counted before it is done is never exceeded, whatever the algorithm, the mode and the limit."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from bench.simtest.record import Fact, Memory, as_kept
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.budget import Budget, Cost, Dimension, Ledger, OverBudgetError
from flowevolve.core.calls import CallRecord
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run, run_plan
from tests.support.depth import examples

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
