"""Invariant 4: nothing is admitted once a limit is reached or spoken for."""

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.core.budget import DIMENSIONS, Budget, Cost, Ledger, OverBudgetError


def test_times_add_up() -> None:
    assert Budget(hours=1, minutes=1, seconds=1).time_limit() == 3661
    assert Budget(tokens=5).time_limit() is None


@pytest.mark.parametrize("limits", [{"minutes": 0}, {"tokens": -1}, {"rollouts": 0}, {"furlongs": 3}])
def test_bad_limits_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Budget(**limits)  # type: ignore[arg-type]  # pydantic checks


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
    assert ledger.part(Cost(evaluations=6, dollars=0.2)) == 0.6


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
    ledger = Ledger(Budget(tokens=7_000))
    for _ in range(2):
        ended_with(ledger, 2_000)
    ledger.reserve(-1, Cost())
    assert ledger.refusal(Cost()) == "tokens"  # two flows of 2,000 each do not fit into what is left
    for _ in range(256):
        ended_with(ledger, 1)
    assert ledger.refusal(Cost()) is None


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
