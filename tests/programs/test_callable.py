"""Problems scored by a function of a user's, outside of the sandbox."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from pydantic import JsonValue

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.plugins import looking_in
from flowevolve.core.artifact import Artifact
from flowevolve.programs import CallableProblem, Case, Verdict, WrongResultError
from flowevolve.programs.callable import callable_problem
from flowevolve.sandbox import Sandbox, SandboxSettings

SEED = "def double(x=1):\n    return x + x\n"


def closeness(result: JSON) -> float:
    if not isinstance(result, int | float):
        raise WrongResultError("a number is wanted")
    return 1 / (1 + abs(10 - result))


def against(result: JSON, arguments: Mapping[str, JSON]) -> dict[str, object]:
    right = result == 2 * float(str(arguments["x"]))
    return {"score": float(right), "feedback": "right" if right else "wrong", "size": float(str(result))}


async def judge(problem: CallableProblem, program: str, case: int = 0) -> Verdict:
    async with Sandbox(SandboxSettings(concurrency=1, timeout=5, preload=())) as sandbox:
        return await problem.judge(Artifact({"program.py": program}, kind="program"), problem.cases[case], sandbox)


@pytest.mark.anyio
async def test_a_function_scores_what_came_out() -> None:
    problem = CallableProblem(closeness, SEED, "double")
    verdict = await judge(problem, "def double():\n    return 9")
    assert (verdict.value, verdict.failure) == (0.5, None)
    assert verdict.metrics["seconds"] > 0
    assert (problem.name, problem.seed()["program.py"]) == ("closeness", SEED)


@pytest.mark.anyio
async def test_it_may_see_the_arguments_and_return_metrics() -> None:
    problem = CallableProblem(against, SEED, "double", cases=[Case("one", {"x": 1}), Case("two", {"x": 2})])
    right = await judge(problem, SEED, case=1)
    wrong = await judge(problem, "def double(x): return 7")
    assert (right.value, right.feedback, right.metrics["size"]) == (1.0, "right", 4.0)
    assert (wrong.value, wrong.feedback, wrong.failure) == (0.0, "wrong", None)


@pytest.mark.anyio
async def test_it_runs_in_a_thread() -> None:
    seen: list[threading.Thread] = []

    def score(result: JSON) -> float:
        seen.append(threading.current_thread())
        return 1.0

    await judge(CallableProblem(score, SEED, "double"), SEED)
    assert seen != [threading.main_thread()]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("def double(): return 'ten'", "a number is wanted"),
        ("def double(): return 1 / 0", "error: ZeroDivisionError"),
        ("def other(): pass", "KeyError: 'double'"),
    ],
)
async def test_programs_that_fail(program: str, failure: str) -> None:
    verdict = await judge(CallableProblem(closeness, SEED, "double", worst=-1.0), program)
    assert verdict.value == -1.0
    assert verdict.failure is not None
    assert failure in verdict.failure


@pytest.mark.anyio
@pytest.mark.parametrize(
    "said", ["'high'", "None", "float('nan')", "{}", "{'score': [1]}", "1 / 0", "__import__('sys').exit(3)"]
)
async def test_scorers_that_fail(said: str) -> None:
    problem = CallableProblem(lambda result: eval(said), SEED, "double")
    verdict = await judge(problem, "def double(): return 1")
    assert verdict.failure is not None
    assert (await judge(problem, SEED)).failure == verdict.failure


@pytest.mark.anyio
async def test_a_copy_of_the_seed_fails_as_any_program_does() -> None:
    scores = iter([1.0])
    problem = CallableProblem(lambda result: next(scores), SEED, "double")
    assert (await judge(problem, SEED)).value == 1.0
    later = await judge(problem, SEED)
    assert (later.value, later.failure) == (0.0, "StopIteration: ")


UNCOUNTED: dict[str, object] = {
    "an array": np.array([1.0, 2.0]),
    "an empty array": np.array([]),
    "more than a float holds": 10**400,
    "more digits than Python prints": 10**5000,
    "infinity": math.inf,
    "a text": "many",
    "an object": object(),
    "a class": np.ndarray,
}
UNREADABLE: dict[str, object] = {
    "an array": np.array([1.0, 2.0]),
    "more digits than Python prints": 10**5000,
    "feedback that is an array": {"score": 1.0, "feedback": np.array([1, 2])},
}


@pytest.mark.anyio
@pytest.mark.parametrize("more", UNCOUNTED.values(), ids=UNCOUNTED)
async def test_what_is_no_finite_number_is_no_metric(more: object) -> None:
    problem = CallableProblem(lambda result: {"score": np.float64(1.5), "size": np.array([3]), "more": more}, SEED, "f")
    verdict = await judge(problem, "def f(): return 1")
    assert (verdict.value, verdict.failure) == (1.5, None)
    assert set(verdict.metrics) == {"score", "size", "seconds"}
    assert verdict.metrics["size"] == 3.0


@pytest.mark.anyio
@pytest.mark.parametrize("said", UNREADABLE.values(), ids=UNREADABLE)
async def test_answers_of_a_scorer_that_can_not_be_read_are_failures(said: object) -> None:
    verdict = await judge(CallableProblem(lambda result: said, SEED, "f"), "def f(): return 1")
    assert verdict.value == 0.0
    assert verdict.failure is not None
    assert "\n" not in verdict.failure


def test_a_problem_as_a_configuration_names_it(tmp_path: Path) -> None:
    (tmp_path / "seed.py").write_text(SEED)
    problem = callable_problem("math:sqrt", tmp_path / "seed.py", "double", cases=({"x": 1}, {"x": 2}))
    assert [(case.id, case.arguments) for case in problem.cases] == [("0", {"x": 1}), ("1", {"x": 2})]
    for evaluator, says in (("no_such_module:f", "no_such_module"), ("math:pi", "not a function")):
        with pytest.raises(InputError, match=says):
            callable_problem(evaluator, tmp_path / "seed.py", "double")
    with pytest.raises(InputError, match=r"task\.entry: the program has no function 'duble'; did you mean 'double'"):
        callable_problem("math:sqrt", tmp_path / "seed.py", "duble", cases=({"x": 1},))


SCORING = """
import os, time


def score(result, arguments):
    print("to nobody in particular")
    os.write(1, b"and past Python's own output")
    if result == 4:
        raise ValueError("four is too little")
    if result == 6:
        time.sleep(1000)
    if result == 8:
        os._exit(1)
    return {"score": result, "feedback": f"ä {arguments['x']}", "process": os.getpid(), "wrong": 0, "nothing": None}
"""


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A folder with the seed, and a scorer in a module of a name of its own."""
    (tmp_path / "seed.py").write_text(SEED)
    (tmp_path / f"scoring_{tmp_path.name}.py").write_text(SCORING)
    return tmp_path


def by_name(folder: Path, timeout: float | None) -> CallableProblem:
    numbers: tuple[dict[str, JsonValue], ...] = ({"x": 1}, {"x": 2}, {"x": 3}, {"x": 4})
    with looking_in(folder):
        return callable_problem(
            f"scoring_{folder.name}:score",
            folder / "seed.py",
            "double",
            cases=numbers,
            worst=-1.0,
            evaluator_timeout=timeout,
        )


@pytest.mark.anyio
async def test_in_a_process_of_its_own_it_says_what_it_says_in_a_thread(named: Path) -> None:
    for case in (0, 1):
        thread, process = [await judge(by_name(named, timeout), SEED, case) for timeout in (None, 100.0)]
        assert (process.value, process.feedback, process.failure) == (thread.value, thread.feedback, thread.failure)
        assert process.metrics.keys() == thread.metrics.keys()
        if not case:
            assert thread.metrics["process"] == os.getpid() != process.metrics["process"]
    assert process.failure == "ValueError: four is too little"


@pytest.mark.anyio
async def test_one_that_hangs_or_vanishes_fails_the_program(named: Path) -> None:
    late = await judge(by_name(named, 0.5), SEED, case=2)
    gone = await judge(by_name(named, 100.0), SEED, case=3)
    assert (late.value, late.failure) == (-1.0, "the evaluator took more than 0.5 s (task.evaluator_timeout)")
    assert (gone.value, gone.failure) == (-1.0, "the evaluator's process was killed, by itself or for want of memory")


@pytest.mark.anyio
async def test_one_that_is_not_there_where_programs_run_ends_the_run(named: Path) -> None:
    problem = by_name(named, 100.0)
    (named / f"scoring_{named.name}.py").unlink()
    with pytest.raises(InputError, match=r"task.evaluator can't be called where programs run: there is no module"):
        await judge(problem, SEED)


def test_its_time_limit_is_more_than_nothing(named: Path) -> None:
    with pytest.raises(InputError, match=r"task.evaluator_timeout is 0 s, but has to be above 0"):
        by_name(named, 0)
