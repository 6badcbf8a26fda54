"""The bench of evaluations: its problem, and what the page says of it."""

from __future__ import annotations

import pytest

from bench.evaluations.problem import Burning
from bench.evaluations.rates import configure
from bench.evaluations.section import goals, section
from flowevolve.programs import WrongResultError


def test_burning_programs_are_scored_by_their_number() -> None:
    problem = Burning(50.0)
    assert problem.score(problem.cases[0], 1.5).value == -0.5
    with pytest.raises(WrongResultError, match="give a number"):
        problem.score(problem.cases[0], "2")
    with pytest.raises(WrongResultError, match="give a number"):
        problem.score(problem.cases[0], float("nan"))
    assert configure(20.0).clock == "real"


def test_the_section_of_evaluations_says_for_which_programs_the_goal_is_met() -> None:
    row = {
        "cores_limit_per_second": 40.0,
        "start_each_per_second": 40.0,
        "evaluations_per_second": 26.0,
        "cut_short_per_second": 0.5,
        "of_the_cores_limit": 0.65,
        "own_cpu_share": 0.05,
        "milliseconds": 50.0,
    }
    settings = {"seconds": 24.0, "profile": "gpt-4o-mini-api"}
    longer = {**row, "milliseconds": 1000.0, "of_the_cores_limit": 0.91}
    made = section({"rows": [row, longer], "goal": 0.9, "settings": settings})
    assert "| 50 | 40.0 | 26.0 | 0.5 | 40.0 | 0.65 |" in made
    assert made.endswith("met for programs of 1000 ms.\n")
    told = {"cores kept busy by programs of 50 ms": False, "cores kept busy by programs of 1000 ms": True}
    assert goals({"rows": [row, longer], "goal": 0.9}) == told
