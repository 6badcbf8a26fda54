"""Limits and costs."""

import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.budget import Budget, Cost


def test_times_add_up() -> None:
    assert Budget(hours=1, minutes=1, seconds=1).time_limit() == 3661
    assert Budget(tokens=5).time_limit() is None


@pytest.mark.parametrize("limits", [{"minutes": 0}, {"tokens": -1}, {"rollouts": 0}, {"furlongs": 3}])
def test_bad_limits_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Budget(**limits)  # type: ignore[arg-type]  # pydantic checks


def test_costs_are_added_and_taken_off_thing_by_thing() -> None:
    some, more = Cost(1, 2, 3, 0.5, 4), Cost(10, 20, 30, 2.0, 40)
    assert some + more == Cost(11, 22, 33, 2.5, 44)
    assert more.less(some) == Cost(9, 18, 27, 1.5, 36)
    assert some.less(more) == Cost()
    assert Cost(tokens=3, dollars=0.5).to_json() == {"tokens": 3, "dollars": 0.5}


def test_only_limits_that_are_set_have_a_name() -> None:
    assert Budget(tokens=5, minutes=2).by_name() == {"tokens": 5, "seconds": 120}


def test_limits_are_raised_where_there_are_any_and_never_lowered() -> None:
    budget = Budget(minutes=1, tokens=100, target_score=0.5)
    assert budget.by_name() == {"tokens": 100, "seconds": 60, "target_score": 0.5}
    limits = {"tokens": 200, "rollouts": 7, "seconds": 30, "target_score": 0.75}
    assert budget.raised(limits).by_name() == {"tokens": 200, "seconds": 60, "target_score": 0.75}
