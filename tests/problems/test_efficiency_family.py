"""The shipped problems of efficiency: seeds and references give equal answers, and references do far less work."""

from __future__ import annotations

import ast
import io
import random
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.problems.base import seed_text
from flowevolve.problems.efficiency import EfficiencyProblem, difference
from flowevolve.problems.efficiency_family import EXERCISES, TESTS, Exercise
from tests.problems.conftest import Court
from tests.problems.test_catalog import REGISTRY
from tests.support.depth import examples

if TYPE_CHECKING:
    from _typeshed import TraceFunction

each = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)


def make(name: str, **settings: object) -> EfficiencyProblem:
    problem = REGISTRY.make(name, settings, "task")
    assert isinstance(problem, EfficiencyProblem)
    return problem


def printed(source: str, text: str) -> str:
    """What a script prints for a test. It is trusted, and runs in this process."""
    return run_here(compile(source, "counted", "exec"), text)


def run_here(code: CodeType, text: str) -> str:
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output):
        patch.setattr(sys, "stdin", io.StringIO(text))
        exec(code, {"__name__": "__main__"})
    return output.getvalue()


def lines_run(source: str, text: str) -> int:
    """The number of lines that a script executes: a measure of work that does not depend on the machine's load."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        nonlocal count
        if frame.f_code.co_filename != "counted":
            return None
        count += event == "line"
        return trace

    code = compile(source, "counted", "exec")
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run_here(code, text)
    finally:
        sys.settrace(before)
    return count


@each
def test_a_seed_answers_as_the_reference_does(exercise: Exercise) -> None:
    seed = seed_text(exercise.name)

    @given(number=st.integers(0, 10**6), size=st.integers(1, 40))
    @examples(40)
    def check(number: int, size: int) -> None:
        text = exercise.draw(random.Random(number), size)
        assert difference(exercise.reference.solve(text), printed(seed, text)) is None

    check()
    for text in exercise.edges:
        assert difference(exercise.reference.solve(text), printed(seed, text)) is None


@each
def test_the_reference_does_a_fraction_of_the_seeds_work(exercise: Exercise) -> None:
    problem = make(exercise.name)
    largest = max(problem.tests, key=lambda trial: len(trial.input)).input
    assert problem.reference is not None
    assert lines_run(problem.source, largest) > 5 * lines_run(problem.reference, largest)


@each
def test_a_seed_is_right_in_the_sandbox_and_other_answers_are_not(exercise: Exercise, court: Court) -> None:
    problem = make(exercise.name, tests=2, size=40, runs=3)
    assert problem.name == exercise.name
    seed, reference = court.judge(problem), court.judge(problem, problem.reference)
    assert (seed.failure, reference.failure) == (None, None)
    assert court.judge(problem, "print(1)").failure is not None


@each
def test_a_seed_has_parts_to_take_apart(exercise: Exercise) -> None:
    tree = ast.parse(seed_text(exercise.name))
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert len(functions) >= 5
    assert functions[-1] == "main"


@each
def test_tests_are_the_same_until_others_are_asked_for(exercise: Exercise) -> None:
    problem = make(exercise.name)
    assert len(problem.tests) == TESTS + len(exercise.edges)
    assert len({trial.input for trial in problem.tests}) == len(problem.tests)
    assert problem.tests == make(exercise.name).tests
    assert problem.tests != make(exercise.name, seed=1).tests
    assert exercise.statement in problem.statement
    assert "higher is better" in problem.statement


def test_the_reference_page_names_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "problems.md").read_text(encoding="utf-8")
    assert all(f"| `{exercise.name}` | {exercise.size} |" in page for exercise in EXERCISES)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"tests": 0}, "task.tests is 0, but has to be at least 1"),
        ({"tests": 9, "size": 8}, "task.size is 8, but has to be at least 9"),
        ({"runs": 2}, "has to be at least 3"),
        ({"sizes": 8}, "did you mean 'size'"),
    ],
)
def test_settings_that_make_no_tests_are_refused(wrong: dict[str, int], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make("efficiency_groups", **wrong)
