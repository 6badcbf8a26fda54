"""Invariant 4: nothing is admitted once a limit is reached or spoken for."""

import pytest
from hypothesis import given, strategies as st

from flowevolve.core.budget import DIMENSIONS, Budget, Cost, OverBudgetError
from flowevolve.engine.ledger import Ledger


def test_every_dimension_is_limited_added_and_taken_off() -> None:
    for dimension in DIMENSIONS:
        ledger = Ledger(Budget.model_validate({dimension: 2}))
        one = Cost(**{dimension: 1})
        ledger.reserve(1, one + one)
        assert ledger.refusal(one) == dimension
        ledger.charge(1, one)
        ledger.close(1)
        assert ledger.refusal(one) is None
        assert ledger.spent.amount(dimension) == 1


def test_reservations_hold_room_until_they_are_released() -> None:
    ledger = Ledger(Budget(rollouts=10))
    ledger.reserve(1, Cost(rollouts=6))
    assert ledger.refusal(Cost(rollouts=6)) == "rollouts"
    ledger.charge(1, Cost(rollouts=2))
    ledger.close(1)
    assert ledger.refusal(Cost(rollouts=6)) is None


@given(
    limit=st.integers(1, 40),
    flows=st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=12),
    estimate=st.integers(0, 6),
)
def test_overshoot_is_at_most_what_open_flows_spend_after_the_limit(
    limit: int, flows: list[list[int]], estimate: int
) -> None:
    ledger = Ledger(Budget(rollouts=limit))
    spent_by_open = 0
    admitted = [n for n, _ in enumerate(flows) if _admit(ledger, n, estimate)]
    for flow in admitted:
        for amount in flows[flow]:
            room = max(0, limit - ledger.spent.rollouts)
            ledger.charge(flow, Cost(rollouts=amount))
            spent_by_open += max(0, amount - room)
        ledger.close(flow)
    assert ledger.overshoot().get("rollouts", 0) == spent_by_open
    assert ledger.spent.rollouts == sum(sum(flows[flow]) for flow in admitted)
    if ledger.spent.rollouts >= limit:
        assert ledger.refusal(Cost()) == "rollouts"


def _admit(ledger: Ledger, flow: int, estimate: int) -> bool:
    cost = Cost(rollouts=estimate)
    if ledger.refusal(cost) is not None:
        return False
    ledger.reserve(flow, cost)
    return True


def test_the_share_is_that_of_the_limit_nearest_its_end() -> None:
    ledger = Ledger(Budget(evaluations=10, dollars=2.0, hours=1))
    assert ledger.share(Cost()) == 0
    ledger.charge(0, Cost(evaluations=2, dollars=1.0))
    assert ledger.share(Cost()) == 0.5
    assert ledger.share(Cost(evaluations=6)) == 0.8
    assert Ledger(Budget(hours=1)).share(Cost(evaluations=6)) == 0
    assert ledger.share_of(Cost(evaluations=6, dollars=0.2)) == 0.6


def test_what_flows_took_is_reserved_for_those_that_follow() -> None:
    ledger = Ledger(Budget(tokens=1000))
    assert ledger.refusal(Cost()) is None  # nothing is known yet
    for flow, tokens in enumerate((0, 100, 300)):  # one had nothing to do
        ledger.reserve(flow, Cost())
        ledger.charge(flow, Cost(tokens=tokens))
        ledger.close(flow)
    ledger.reserve(3, Cost())
    ledger.reserve(4, Cost())
    assert ledger.refusal(Cost()) is None  # 400 are spent, and 200 are held for each of three
    ledger.charge(4, Cost(tokens=100))
    assert ledger.refusal(Cost()) == "tokens"  # one that has taken 100 is no cheap one: it will take 200 more
    assert ledger.refusal(Cost(), kept=Cost(tokens=1)) == "tokens"
    ledger.close(4)
    assert ledger.refusal(Cost()) is None


def test_the_last_part_of_a_budget_is_for_a_flow_on_its_own() -> None:
    ledger = Ledger(Budget(dollars=1.0))
    ledger.reserve(0, Cost())
    ledger.charge(0, Cost(dollars=0.75))
    assert ledger.refusal(Cost()) is None
    ledger.close(0)
    assert ledger.refusal(Cost()) is None
    assert ledger.refusal(Cost(dollars=0.5)) == "dollars"
    assert ledger.refusal(Cost(), kept=Cost(dollars=0.5)) == "dollars"
    ledger.reserve(1, Cost())
    assert ledger.refusal(Cost()) == "dollars"


def test_what_is_like_no_other_says_nothing_of_others() -> None:
    ledger = Ledger(Budget(tokens=100))
    ledger.reserve(0, Cost(), usual=False)
    ledger.charge(0, Cost(tokens=60))
    ledger.close(0)
    ledger.reserve(1, Cost())
    assert ledger.refusal(Cost()) is None


def test_only_what_ended_of_late_is_looked_at() -> None:
    ledger = Ledger(Budget(tokens=4_258))
    for tokens in (1_000, 3_000):
        ended_with(ledger, tokens)
    ledger.reserve(-1, Cost())
    assert ledger.refusal(Cost()) == "tokens"  # two flows of 2,000 each do not fit into what is left
    for _ in range(256):
        ended_with(ledger, 1)
    assert ledger.refusal(Cost()) is None  # 4,256 are spent, and one is held for each of two


@pytest.mark.parametrize(("limit", "refusal"), [(1800, None), (1799, "tokens")])
def test_a_flow_is_expected_to_take_what_those_took_that_took_more_than_it_has(limit: int, refusal: str | None) -> None:
    ledger = Ledger(Budget(tokens=limit))
    for tokens in (100, 200, 600):
        ended_with(ledger, tokens)
    ledger.reserve(1, Cost())
    ledger.charge(1, Cost(tokens=200))
    assert ledger.refusal(Cost()) == refusal  # 1,100 are spent, 400 held for the open one, and 300 for a new one


def ended_with(ledger: Ledger, tokens: int) -> None:
    ledger.reserve(0, Cost())
    ledger.charge(0, Cost(tokens=tokens))
    ledger.close(0)


def test_what_is_kept_for_the_end_is_for_no_work_before() -> None:
    ledger = Ledger(Budget(rollouts=100))
    ledger.kept_for_end = Cost(rollouts=20)
    assert ledger.refusal(Cost(rollouts=81)) == "rollouts"
    assert ledger.refusal(Cost(rollouts=80)) is None
    assert ledger.refusal(Cost(rollouts=60), kept=Cost(rollouts=21)) == "rollouts"
    with pytest.raises(OverBudgetError):
        ledger.begin(0, "0", Cost(rollouts=81))
    ledger.begin(0, "0", Cost(rollouts=80))
    ledger.kept_for_end = Cost()
    ledger.begin(1, "1", Cost(rollouts=20))


def test_limits_are_raised_where_there_are_any_and_never_lowered() -> None:
    ledger = Ledger(Budget(minutes=1, tokens=100, target_score=0.5))
    ledger.raise_limits({"tokens": 200, "rollouts": 7, "seconds": 30, "target_score": 0.75})
    names = ("tokens", "rollouts", "seconds", "target_score")
    assert [ledger.limit(name) for name in names] == [200, None, 60, 0.75]
    ledger.raise_limits({"tokens": 150, "seconds": 90, "target_score": 0.6})
    assert [ledger.limit(name) for name in names] == [200, None, 90, 0.75]
    unlimited = Ledger(Budget(tokens=1))
    unlimited.raise_limits({"seconds": 90, "target_score": 0.6})
    assert (unlimited.seconds, unlimited.target_score) == (None, None)


def test_a_budget_is_refused_when_it_is_spent_or_owed_or_would_be_passed() -> None:
    ledger = Ledger(Budget(rollouts=10))
    assert (ledger.refusal(Cost(rollouts=10)), ledger.refusal(Cost(rollouts=11))) == (None, "rollouts")
    ledger.charge(1, Cost(rollouts=9))
    assert (ledger.refusal(Cost()), ledger.refusal(Cost(rollouts=1))) == (None, None)
    ledger.owed = Cost(rollouts=1)
    assert ledger.refusal(Cost()) == "rollouts"
    assert ledger.overshoot() == {}


def test_work_takes_what_its_flow_has_reserved_and_else_what_there_is_room_for() -> None:
    ledger = Ledger(Budget(rollouts=10))
    ledger.reserve(1, Cost(rollouts=6))
    ledger.begin(1, "1.0", Cost(rollouts=6))
    assert (ledger.refusal(Cost(rollouts=4)), ledger.refusal(Cost(rollouts=5))) == (None, "rollouts")
    ledger.begin(1, "1.1", Cost(rollouts=4))
    with pytest.raises(OverBudgetError) as error:
        ledger.begin(1, "1.2", Cost(rollouts=1))
    assert (error.value.dimension, error.value.needed, error.value.alone) == ("rollouts", 11, False)
    ledger.charge(1, Cost(rollouts=2), "1.0")
    ledger.end("1.0", Cost(rollouts=6))
    assert (ledger.refusal(Cost(rollouts=4)), ledger.refusal(Cost(rollouts=5))) == (None, "rollouts")
    ledger.end("1.1", Cost(rollouts=4))
    assert ledger.refusal(Cost(rollouts=8)) is None
    ledger.end("1.1", Cost(rollouts=4))  # what was not begun is no mistake


def test_all_that_is_reserved_can_be_begun_with() -> None:
    ledger = Ledger(Budget(rollouts=10))
    ledger.reserve(1, Cost(rollouts=10))
    ledger.begin(1, "1.0", Cost(rollouts=4))
    ledger.begin(1, "1.1", Cost(rollouts=6))
    assert ledger.refusal(Cost(rollouts=1)) == "rollouts"


def test_a_part_of_the_work_on_an_item_ends_and_the_rest_stays_set_aside() -> None:
    ledger = Ledger(Budget(rollouts=10))
    ledger.begin(1, "1.0", Cost(rollouts=3))
    ledger.begin(1, "1.0", Cost(rollouts=4))
    ledger.charge(1, Cost(rollouts=1), "1.0")
    ledger.end("1.0", Cost(rollouts=3))
    assert (ledger.refusal(Cost(rollouts=5)), ledger.refusal(Cost(rollouts=6))) == (None, "rollouts")


@pytest.mark.parametrize(
    ("reserved", "begun", "spent", "alone"),
    [(0, 0, 0, True), (3, 0, 0, True), (3, 2, 0, True), (0, 0, 1, False)],
)
def test_work_for_which_there_never_was_room_is_told_apart(reserved: int, begun: int, spent: int, alone: bool) -> None:
    ledger = Ledger(Budget(rollouts=10))
    ledger.reserve(1, Cost(rollouts=reserved))
    if begun:
        ledger.begin(1, "1.0", Cost(rollouts=begun))
    ledger.charge(9, Cost(rollouts=spent))
    with pytest.raises(OverBudgetError) as error:
        ledger.begin(1, "1.0", Cost(rollouts=11))
    assert error.value.alone == alone
    assert ledger.is_below("rollouts", error.value.needed)
    assert not ledger.is_below("rollouts", 10)
    assert not ledger.is_below("tokens", 10)
    assert Ledger(Budget(rollouts=10, tokens=50)).is_below("rollouts", 11), "whatever the other limits are"


def test_what_others_have_set_aside_leaves_less_room() -> None:
    ledger = Ledger(Budget(rollouts=10))
    ledger.reserve(1, Cost(rollouts=5))
    ledger.begin(2, "2.0", Cost(rollouts=2))
    with pytest.raises(OverBudgetError) as error:
        ledger.begin(3, "3.0", Cost(rollouts=4))
    assert (error.value.needed, error.value.alone) == (11, False)
    ledger.begin(3, "3.0", Cost(rollouts=3, tokens=10**9))


def test_what_was_charged_comes_out_of_the_work_and_then_of_the_flow() -> None:
    ledger = Ledger(Budget(rollouts=10))
    ledger.reserve(1, Cost(rollouts=8))
    ledger.begin(1, "1.0", Cost(rollouts=2))
    ledger.charge(1, Cost(rollouts=5), "1.0")  # two that were set aside, and three more
    assert (ledger.refusal(Cost(rollouts=2)), ledger.refusal(Cost(rollouts=3))) == (None, "rollouts")


@pytest.mark.parametrize(("dimension", "limit"), [("tokens", 100), ("dollars", 2.0)])
def test_no_call_is_sent_once_what_nobody_can_foretell_is_spent(dimension: str, limit: float) -> None:
    ledger = Ledger(Budget.model_validate({dimension: limit, "rollouts": 1}))
    ledger.charge(1, Cost(rollouts=5))
    ledger.check_unforeseen()
    ledger.charge(1, Cost(**{dimension: limit / 2}))  # type: ignore[arg-type]  # either is a number
    ledger.check_unforeseen()
    ledger.owed = Cost(**{dimension: limit / 2})  # type: ignore[arg-type]  # as above
    with pytest.raises(OverBudgetError) as error:
        ledger.check_unforeseen()
    assert error.value.dimension == dimension
    assert limit < error.value.needed < 1.001 * limit
    assert ledger.overshoot() == {"rollouts": 4}


@pytest.mark.parametrize(("charged", "over"), [(9, {}), (10, {}), (11, {"rollouts": 1})])
def test_a_limit_that_is_just_reached_is_not_passed(charged: int, over: dict[str, int]) -> None:
    ledger = Ledger(Budget(rollouts=10))
    ledger.charge(1, Cost(rollouts=charged))
    assert ledger.overshoot() == over


def test_how_often_something_is_affordable() -> None:
    ledger = Ledger(Budget(rollouts=10, tokens=100))
    ledger.charge(1, Cost(rollouts=4, tokens=90))
    assert ledger.affords(Cost(rollouts=2, tokens=4)) == 2.5
    assert ledger.affords(Cost(rollouts=4)) == 1.5
    assert ledger.affords(Cost(proposals=1)) is None
    ledger.charge(1, Cost(tokens=90))
    assert ledger.affords(Cost(tokens=4)) == 0.0


def test_a_resumed_run_goes_by_what_it_had_spent_and_what_its_flows_took() -> None:
    ledger = Ledger(Budget(tokens=1000))
    ledger.restore(Cost(tokens=500), [Cost(tokens=200), Cost(tokens=400)])
    assert ledger.spent == Cost(tokens=500)
    ledger.reserve(1, Cost())
    assert ledger.refusal(Cost()) == "tokens"  # 300 are held for each of two
    ledger.close(1)
    assert ledger.refusal(Cost()) is None
