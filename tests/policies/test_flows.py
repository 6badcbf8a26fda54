"""How many flows are open at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.core.budget import Cost
from flowevolve.core.policies import FlowFacts, FlowLimit
from flowevolve.policies.flows import AIMS, AutoFlows, FixedFlows

NOTHING_KNOWN = FlowFacts(Cost(), Cost(), affordable=None, call_limit=256, gathered=1, validated=3)
AUTO = AutoFlows()


def facts(edit: int, validation: int, affordable: float | None = None, call_limit: int = 256) -> FlowFacts:
    return replace(
        NOTHING_KNOWN,
        edit=Cost(tokens=edit),
        validation=Cost(tokens=validation),
        affordable=affordable,
        call_limit=call_limit,
    )


def test_a_fixed_number_is_that_number() -> None:
    assert FixedFlows(7).limit(NOTHING_KNOWN, FlowLimit(3, "before")).flows == 7
    assert FixedFlows(1).limit(NOTHING_KNOWN, None).flows == 1
    with pytest.raises(InputError, match="max_in_flight"):
        FixedFlows(0)


@pytest.mark.parametrize(("validation", "flows"), [(1200, 12), (330, 3), (90, 2), (10**6, 32)])
def test_there_are_as_many_as_a_validation_costs(validation: int, flows: int) -> None:
    limit = AUTO.limit(facts(100, validation), None)
    assert limit.flows == flows
    assert "a validation costs as much as" in limit.reason


def test_who_wants_time_gets_more_and_who_wants_score_fewer() -> None:
    assert AutoFlows(scale=2.0).limit(facts(100, 800), None).flows == 16
    assert AutoFlows(scale=0.5).limit(facts(100, 800), None).flows == 4


@pytest.mark.parametrize(("accepted", "flows"), [(1.0, 12), (0.5, 6), (0.2, 3), (0.0, 3)])
def test_who_is_eager_gets_more_than_validations_cost_as_long_as_these_accept(accepted: float, flows: int) -> None:
    known = replace(facts(100, 300), accepted=accepted)
    limit = AutoFlows(eager=36).limit(known, None)
    assert limit.flows == flows
    told = "no recent validation has rejected" if accepted == 1 else f"{accepted:.0%} of recent validations accepted"
    assert (told in limit.reason) is (flows > 3)
    assert AUTO.limit(known, None).flows == 3


@pytest.mark.parametrize(
    ("validation", "flows"), [(50, 16), (200, 16), (300, 12), (400, 9), (600, 6), (900, 9), (1200, 12)]
)
def test_who_is_eager_gets_the_fewer_the_more_a_validation_costs_but_no_fewer_than_it_costs(
    validation: int, flows: int
) -> None:
    limit = AutoFlows(eager=36).limit(facts(100, validation), None)
    assert (limit.flows, "rejected" in limit.reason) == (flows, validation < 600)


def test_who_wants_time_gets_sixteen_as_long_as_all_is_accepted_until_twice_the_cost_is_more() -> None:
    flows = [AIMS["time"].limit(facts(100, 100 * price), None).flows for price in (1, 4, 7, 8, 9, 12)]
    assert flows == [16, 16, 16, 16, 18, 24]


def test_in_the_opening_who_is_eager_gets_half_as_many_and_no_more_than_the_budget_and_the_server_allow() -> None:
    eager, known = AutoFlows(eager=48), facts(100, 300)
    limit = eager.limit(replace(known, validated=2), None)
    assert (limit.flows, limit.reason.endswith("in the opening of the run, half as many flows are open")) == (8, True)
    assert eager.limit(replace(known, affordable=20), None).flows == 5
    assert eager.limit(replace(known, call_limit=3), None).flows == 6


@pytest.mark.parametrize(("validated", "flows"), [(1, 6), (2, 6), (3, 12)])
def test_before_two_groups_were_validated_there_are_half_as_many(validated: int, flows: int) -> None:
    limit = AUTO.limit(replace(facts(100, 1200), validated=validated), None)
    assert limit.flows == flows
    assert ("in the opening" in limit.reason) is (validated < 3)


def test_where_nobody_counts_tokens_it_goes_by_rollouts() -> None:
    known = replace(NOTHING_KNOWN, edit=Cost(rollouts=6, tokens=50), validation=Cost(rollouts=60))
    assert AUTO.limit(known, None).flows == 10


def test_where_nothing_is_known_it_is_the_most() -> None:
    assert AUTO.limit(NOTHING_KNOWN, None).flows == 16


def test_a_small_budget_gets_few_flows_so_that_they_can_learn_from_each_other() -> None:
    limit = AUTO.limit(facts(100, 1200, affordable=20), None)
    assert limit.flows == 5
    assert "what was left of the budget paid for about 20 more" in limit.reason
    assert AUTO.limit(facts(100, 1200, affordable=1), None).flows == 1


@pytest.mark.parametrize(("overtaken", "flows"), [(0.0, 12), (0.5, 3), (0.9, 1)])
def test_edits_that_overtake_each_other_leave_fewer_flows_where_it_narrows(overtaken: float, flows: int) -> None:
    known = replace(facts(100, 1200), overtaken=overtaken)
    limit = AutoFlows(narrows=True).limit(known, None)
    assert limit.flows == flows
    assert ("were overtaken" in limit.reason) is (overtaken > 0)
    assert AUTO.limit(known, None).flows == 12


def test_a_server_that_takes_few_calls_gets_few_flows() -> None:
    limit = AUTO.limit(facts(100, 1200, call_limit=2), None)
    assert (limit.flows, limit.reason) == (4, "the server takes 2 calls at a time")


@pytest.mark.parametrize(("validated", "flows"), [(0, 8), (1, 1), (2, 2), (3, 8)])
def test_in_the_opening_a_server_that_takes_few_calls_gets_fewer_still(validated: int, flows: int) -> None:
    limit = AUTO.limit(replace(facts(100, 2000, call_limit=4), validated=validated), None)
    assert limit.flows == flows
    assert ("in the opening" in limit.reason) is (validated in (1, 2))


def test_in_the_opening_there_is_a_flow_even_if_the_server_takes_one_call() -> None:
    assert AUTO.limit(replace(facts(100, 2000, call_limit=1), validated=1), None).flows == 1


def test_a_stage_that_waits_for_many_gets_so_many() -> None:
    assert AUTO.limit(replace(NOTHING_KNOWN, gathered=40), None).flows == 40


@given(edit=st.integers(1, 500), validation=st.integers(1, 5000), before=st.integers(1, 40))
def test_a_limit_is_kept_until_another_is_much_better(edit: int, validation: int, before: int) -> None:
    current = FlowLimit(before, "before")
    limit = AUTO.limit(facts(edit, validation), current)
    wanted = AUTO.limit(facts(edit, validation), None).flows
    assert limit.flows in (before, wanted)
    assert 0.75 * limit.flows <= wanted <= 1.34 * limit.flows


@pytest.mark.parametrize(("before", "flows"), [(8, 12), (9, 12), (10, 10), (12, 12), (15, 15), (16, 12), (17, 12)])
def test_what_is_not_a_quarter_higher_or_lower_changes_no_limit(before: int, flows: int) -> None:
    assert AUTO.limit(facts(100, 1200), FlowLimit(before, "before")).flows == flows


@pytest.mark.parametrize(("room", "flows"), [(None, 16), (2.0, 16), (8.0, 16), (20.5, 41)])
def test_machines_that_take_many_programs_get_twice_as_many_flows(room: float | None, flows: int) -> None:
    limit = AUTO.limit(replace(NOTHING_KNOWN, room=room), None)
    assert limit.flows == flows
    assert ("the machines" in limit.reason) == (flows > 16)


def test_machines_change_nothing_where_a_validation_says_how_many_flows_there_is_use_for() -> None:
    assert AUTO.limit(replace(facts(100, 330), room=40.0), None).flows == 3
