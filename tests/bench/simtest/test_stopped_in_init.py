"""A run that was stopped before it could say that nothing works that it began with says so when it goes on."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bench.simtest.case import Act, Case, Life
from bench.simtest.trial import run_case
from flowevolve._util.json_types import JSON


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("best_of_n", "InputError: problem 'guess': the seed fails: error: it failed"),
        ("one_plus_lambda", "InputError: problem 'guess': the seed fails: error: it failed"),
        ("levi", "NothingWorksError: nothing that the run began with works; look into the event log"),
        ("cse", "NothingWorksError: nothing that the run began with works; look into the event log"),
        ("context_evolve", "NothingWorksError: nothing that the run began with works; look into the event log"),
        ("code_evolve", "NothingWorksError: nothing that the run began with works; look into the event log"),
    ],
)
def test_a_run_that_was_stopped_says_that_nothing_works_when_it_goes_on(name: str, says: str) -> None:
    settings: Mapping[str, JSON] = {
        "clock": "virtual",
        "preset": "plain",
        "sim.profile": "instant",
        "sim.world": "code",
        "algorithm.name": name,
        "budget.rollouts": 40,
    }
    trial = run_case(Case(0, settings, {"evaluation fails": 1.0}, (Life((Act(3, "stop"),)), Life())))
    assert trial.faults == []
    assert trial.endings[0].startswith("stopped")
    assert says in trial.endings[1]
