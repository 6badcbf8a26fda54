"""Intervals, how a run goes on that was simulated in part, and what limits it."""

from __future__ import annotations

import math

import pytest

from flowevolve.core.budget import Budget
from flowevolve.core.policies import FlowLimit
from flowevolve.runner.forecast.course import Amounts, Course
from flowevolve.runner.forecast.doubts import LEAST, Estimate, estimate
from flowevolve.runner.forecast.limits import Limit, Load


def test_what_never_differs_has_the_narrowest_interval() -> None:
    found = estimate([100.0, 100.0, 100.0])
    assert found.expected == pytest.approx(100)
    assert (found.low, found.high) == pytest.approx((100 * math.exp(-LEAST), 100 * math.exp(LEAST)))


def test_an_interval_is_the_wider_the_more_simulated_runs_differ_and_as_wide_to_both_sides() -> None:
    found, wider = estimate([90.0, 100.0, 110.0]), estimate([60.0, 100.0, 150.0])
    assert found.low < 90 < 110 < found.high
    assert wider.factor > found.factor
    assert found.high / found.expected == pytest.approx(found.expected / found.low)


def test_what_the_budget_fixes_is_off_by_no_more_than_the_simulated_runs() -> None:
    taken = [100.0, 103.0, 101.0]
    assert estimate(taken, fixed=True).factor < 1.1 < estimate(taken).factor


def test_nothing_taken_is_no_error() -> None:
    assert estimate([0.0, 4.0]) == Estimate(2.0, 0.0, 4.0)
    assert Estimate(2.0, 0.0, 4.0).factor == math.inf


def course(calls: int) -> Course:
    """A second, 90 tokens and a tenth of a proposal a call, after a beginning of 10 calls with twice the tokens."""
    marks = [Amounts()]
    for number in range(calls):
        input_tokens = 100.0 if number < 10 else 10.0
        marks.append(marks[-1].plus(Amounts(1.0, input_tokens, 80.0, 0.0, 0.1, 1.0, 0.0, 1.0, 5.0), 1.0))
    return Course(marks, None, "")


@pytest.mark.parametrize(
    ("budget", "ends", "seconds"),
    [
        (Budget(minutes=5), "budget.minutes", 300),
        (Budget(tokens=90 * 1000 + 900), "budget.tokens", 1000),
        (Budget(proposals=50, hours=10), "budget.proposals", 500),
        (Budget(rollouts=1_000_000, hours=1), "budget.hours", 3600),
    ],
)
def test_a_course_goes_on_as_after_its_beginning_until_the_nearest_limit(
    budget: Budget, ends: str, seconds: float
) -> None:
    taken, why = course(100).when_spent(budget)
    assert why == ends
    assert taken.seconds == pytest.approx(seconds)
    assert taken.output_tokens == pytest.approx(80 * seconds)


FLOWS = FlowLimit(4, "as configured")


@pytest.mark.parametrize(
    ("load", "limit"),
    [
        (Load(8, 256, 7.9, 0.0, 0.0, FLOWS), "width"),
        (Load(64, 16, 15.9, 0.0, 0.0, FLOWS), "server full"),
        (Load(64, None, 20.0, 0.5, 0.0, FLOWS), "rate limit"),
        (Load(64, None, 20.0, 0.0, 0.95, FLOWS), "evaluation cores"),
        (Load(64, None, 20.0, 0.0, 0.0, FLOWS), "flows"),
        (Load(64, None, 20.0, 0.0, 0.0, None), "lockstep"),
    ],
)
def test_what_is_used_up_limits(load: Load, limit: Limit) -> None:
    assert load.limit() == limit
