"""Helpers for the tests of several problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.problems.base import DrivenProblem
from flowevolve.programs import Case, FunctionProblem, Problem, Verdict, WrongResultError


def checker(problem: Problem) -> FunctionProblem:
    """The problem with its method ``score``."""
    assert isinstance(problem, FunctionProblem)
    return problem


def score(problem: Problem, result: object, case: Case | None = None) -> Verdict:
    return checker(problem).score(case or problem.cases[0], cast("JSON", result))


def refusal(problem: Problem, result: object, case: Case | None = None) -> str:
    """The reason why a result is refused."""
    with pytest.raises(WrongResultError) as caught:
        score(problem, result, case)
    return str(caught.value)


def called(problem: Problem, case: Case | None = None) -> JSON:
    """What the seed returns for a case. It is trusted, and runs in this process."""
    source, entry = problem.seed()["program.py"], checker(problem).entry
    if isinstance(problem, DrivenProblem):
        source, entry = problem.with_driver(problem.seed()), problem.play
    names: dict[str, object] = {}
    exec(source, names)
    function = names[entry]
    assert callable(function)
    arguments = (case or problem.cases[0]).arguments
    result: JSON = function(**arguments) if isinstance(arguments, Mapping) else function(*arguments)
    return result
