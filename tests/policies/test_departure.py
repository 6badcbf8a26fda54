"""When a group leaves."""

from __future__ import annotations

import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.budget import Cost
from flowevolve.core.policies import Waiting
from flowevolve.policies.departure import Balance


def waiting(spent: Cost, price: Cost, upstream: int = 3, downstream: int = 0, validated: int = 3) -> Waiting:
    return Waiting(2, upstream, downstream, spent, price, validated)


@pytest.mark.parametrize(("tokens", "leaves"), [(99, False), (100, True), (500, True)])
def test_it_leaves_when_its_edits_cost_as_much_as_a_validation(tokens: int, leaves: bool) -> None:
    assert Balance().leaves(waiting(Cost(tokens=tokens), Cost(tokens=100))) is leaves


def test_a_higher_balance_waits_for_more() -> None:
    assert not Balance(2.0).leaves(waiting(Cost(tokens=199), Cost(tokens=100)))
    assert Balance(2.0).leaves(waiting(Cost(tokens=200), Cost(tokens=100)))


def test_it_leaves_when_nothing_is_under_way_that_could_join() -> None:
    assert Balance().leaves(waiting(Cost(), Cost(tokens=100), upstream=0))


def test_while_no_validation_has_ended_it_waits_for_all_that_is_under_way() -> None:
    assert not Balance().leaves(waiting(Cost(tokens=10**9), Cost()))


def test_where_nobody_counts_tokens_it_goes_by_rollouts() -> None:
    assert not Balance().leaves(waiting(Cost(rollouts=9), Cost(rollouts=10)))
    assert Balance().leaves(waiting(Cost(rollouts=10), Cost(rollouts=10)))


@pytest.mark.parametrize("upstream", [0, 3])
def test_with_a_limit_it_waits_for_those_that_left_before(upstream: int) -> None:
    paid, price = Cost(tokens=200), Cost(tokens=100)
    assert not Balance(after=1).leaves(waiting(paid, price, upstream, downstream=1))
    assert Balance(after=1).leaves(waiting(paid, price, upstream))


@pytest.mark.parametrize("validated", [1, 2])
def test_in_the_opening_it_leaves_for_less_but_not_before_the_one_before_is_back(validated: int) -> None:
    half, price = Cost(tokens=50), Cost(tokens=100)
    assert Balance().leaves(waiting(half, price, validated=validated))
    assert not Balance().leaves(waiting(Cost(tokens=49), price, validated=validated))
    for upstream in (0, 3):
        assert not Balance().leaves(waiting(price, price, upstream, downstream=1, validated=validated))
    assert Balance().leaves(waiting(price, price, downstream=1))


def test_a_balance_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="balance"):
        Balance(0.0)


def test_a_validation_of_one_rollout_has_a_price_too() -> None:
    assert Balance().leaves(waiting(Cost(rollouts=1), Cost(rollouts=1)))
