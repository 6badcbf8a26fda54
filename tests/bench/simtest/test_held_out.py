"""A run whose held-out test failed has no result, and is gone on with."""

from __future__ import annotations

from collections.abc import Mapping

from bench.simtest.case import Case, Life
from bench.simtest.trial import run_case
from flowevolve._util.json_types import JSON


def test_where_the_held_out_test_fails_no_result_is_asked_for_and_the_run_goes_on() -> None:
    settings: Mapping[str, JSON] = {
        "clock": "virtual",
        "preset": "plain",
        "sim.profile": "instant",
        "sim.world": "rules",
        "algorithm.name": "gepa",
        "held_out": True,
        "budget.rollouts": 12,
    }
    trial = run_case(Case(2, settings, {"refused": 0.03}, (Life(), Life())))
    assert trial.faults == []
    assert len(trial.endings) == 2, "seed 2 stands for other faults now: look for one that fails in the held-out test"
    assert all(each.startswith("rollouts") and "a bad key" in each for each in trial.endings)
