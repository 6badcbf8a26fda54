"""Spot scheduling: costs are counted, deadlines are kept, and programs that look ahead are caught."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from flowevolve.problems.drivers.spot import harness_run
from flowevolve.problems.spot import CHOICES, ON_DEMAND_PRICE, SPOT_PRICE, SpotScheduling
from tests.problems.conftest import Court
from tests.support.problem_checks import refusal

JOB = {
    "work": 3600.0,
    "deadline": 7200.0,
    "restart": 300.0,
    "step": 600.0,
    "spot_price": 1.0,
    "on_demand_price": 3.0,
}
"""An hour's work in two hours, each of six steps."""


def always(choice: str) -> str:
    return f"def decide(state):\n    return {choice!r}\n"


def test_a_machine_is_paid_while_it_starts() -> None:
    cost, chosen = harness_run([True] * 12, JOB, lambda state: "spot")
    assert len(chosen) == 7  # 300 seconds to start, then 3600
    assert cost == pytest.approx(7 / 6)
    cost, chosen = harness_run([False] * 12, JOB, lambda state: "on_demand")
    assert cost == pytest.approx(3 * 7 / 6)
    assert len(chosen) == 7


def test_a_machine_that_is_taken_away_starts_anew() -> None:
    trace = [True, True, False, True, True, True, True, True, True, True, True, True]
    cost, chosen = harness_run(trace, JOB, lambda state: "spot" if state["available"] else "wait")
    assert chosen == ["spot", "spot", "wait", *["spot"] * 5]  # 300 + 600 done, then 300 + 4 * 600
    assert cost == pytest.approx(7 / 6)


def test_who_would_be_late_gets_the_dear_machine() -> None:
    """The job may wait until an hour and a restart are left, rounded to whole steps: that is after 4 of 12 steps."""
    cost, chosen = harness_run([True] * 12, JOB, lambda state: "wait")
    assert cost == pytest.approx(3 * 7 / 6)
    assert len(chosen) == 5 + 7


@given(data=st.data(), restart=st.floats(0, 2000))
def test_nobody_is_late(data: st.DataObject, restart: float) -> None:
    steps = 20
    job = {**JOB, "restart": restart, "deadline": 600.0 * steps}
    trace = data.draw(st.lists(st.booleans(), min_size=steps, max_size=steps))
    states: list[Mapping[str, object]] = []

    def choose(state: dict[str, object]) -> str:
        states.append(state)
        return data.draw(st.sampled_from([*CHOICES, "nonsense"]))

    harness_run([*trace, False, False], job, choose)
    assert len(states) <= steps  # with one choice more, the job would have missed its deadline
    for place, state in enumerate(states):
        assert state["elapsed"] == 600.0 * place
        assert state["seen"] == trace[: place + 1]
        assert state["available"] == trace[place]
        assert not (state["running"] == "spot" and not state["available"])


def test_the_dear_machine_all_the_time_has_its_price(court: Court) -> None:
    problem = SpotScheduling(traces=2)
    for case in problem.cases:
        verdict = court.judge(problem, always("on_demand"), case)
        assert verdict.failure is None
        assert 48 * ON_DEMAND_PRICE <= verdict.metrics["cost"] <= 48.2 * ON_DEMAND_PRICE
        assert verdict.metrics["saved"] == pytest.approx(0, abs=1)
        assert verdict.value == pytest.approx(SPOT_PRICE / ON_DEMAND_PRICE, abs=0.01)


def test_spot_machines_save_more_the_later_the_deadline(court: Court) -> None:
    problem = SpotScheduling()
    saved = [court.judge(problem, case=case).metrics["saved"] for case in problem.cases]
    assert min(saved[3:]) > max(saved[:3]) > 0
    assert max(saved) < 100


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ([], "the choices must have 2 entries, not 0"),
        ([[], []], "trace 0, step 0: there must be one of wait, spot, on_demand"),
        ([["on_demand"] * 400, []], "trace 0 has 400 choices for 2"),
        ([["on_demand"] * 200 + ["free"] * 200, []], "trace 0, step 200: there must be one of"),
        ([None, None], "the choices of trace 0 must be a list, not null"),
        ([["on_demand"] * 100 + [["spot"]] * 300, []], "trace 0, step 100: there must be one of"),
    ],
)
def test_wrong_choices_are_refused(result: object, says: str) -> None:
    assert refusal(SpotScheduling(traces=2), result).startswith(says)


LOOKS_AHEAD = """
import sys

def decide(state):
    frame = sys._getframe()
    while frame is not None and "trace" not in frame.f_locals:
        frame = frame.f_back
    if frame is None:
        return "on_demand"
    return "spot" if any(frame.f_locals["trace"][len(state["seen"]):]) else "wait"
"""
"""Chooses otherwise wherever it can't look ahead, so that any sample of its choices shows it."""
REMEMBERS = """
calls = []

def decide(state):
    calls.append(1)
    return "spot" if len(calls) % 2 else "on_demand"
"""


@pytest.mark.parametrize("source", [LOOKS_AHEAD, REMEMBERS])
def test_choices_that_depend_on_more_than_the_state_are_found_out(court: Court, source: str) -> None:
    verdict = court.judge(SpotScheduling(), source)
    assert verdict.value == 0.0
    assert verdict.failure is not None
    assert "must depend on the arguments alone" in verdict.failure


def test_a_program_that_answers_otherwise_fails(court: Court) -> None:
    verdict = court.judge(SpotScheduling(traces=1), always("free"))
    assert verdict.failure is not None
    assert "decide must return 'wait', 'spot' or 'on_demand', not 'free'" in verdict.failure
