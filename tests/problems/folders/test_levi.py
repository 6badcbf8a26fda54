"""LEVI's folders, unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.problems.folders.catalog import folder_problem
from tests.problems.folders.conftest import Judge
from tests.support.folder_samples import LEVI, write

pytestmark = pytest.mark.anyio

TWO = "def pack(items):\n    return [items[:2], *([items[2:]] if items[2:] else [])]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "bins", LEVI)


def test_what_a_folder_is_read_as(folder: Path) -> None:
    problem = folder_problem(folder)
    assert (problem.name, problem.file) == ("bins", "program.py")
    assert problem.statement.startswith("# Packing\nFill bins of size 10.\n\nThe program has to define")
    assert "def pack(items):" in problem.statement
    assert problem.seed()["program.py"].startswith("def pack(items):\n    bins = []\n")


async def test_its_function_is_scored(folder: Path, judge: Judge) -> None:
    seed = await judge(folder_problem(folder), None)
    better = await judge(folder_problem(folder), TWO)
    assert (seed.value, seed.metrics["bins"]) == (20.0, 5.0)
    assert better.value == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("def pack(items): return []", "items are missing"),
        ("def pack(items): return [[*items]]", "a bin is too full"),
        ("def other(items): return []", "NameError: the program defines no function pack"),
        ("def pack(items): return None", "TypeError"),
    ],
)
async def test_programs_that_fail(folder: Path, judge: Judge, program: str, failure: str) -> None:
    verdict = await judge(folder_problem(folder), program)
    assert verdict.failure is not None
    assert failure in verdict.failure


async def test_without_a_runner_the_usual_names_are_taken(tmp_path: Path, judge: Judge) -> None:
    problem = """
PROBLEM_DESCRIPTION = "Count."
FUNCTION_SIGNATURE = "def count():"
SEED_PROGRAM = "def count(): return 1"
INPUTS = [1, 2]
def score_fn(count, inputs=None):
    return {"score": count() * len(inputs)}
"""
    verdict = await judge(folder_problem(write(tmp_path / "plain", {"problem.py": problem})), None)
    assert verdict.value == 2.0


async def test_a_signature_alone_is_a_seed_that_may_fail(tmp_path: Path, judge: Judge) -> None:
    problem = LEVI["problem.py"].replace("SEED = ", "NOT_A_SEED = ")
    found = folder_problem(write(tmp_path / "bare", {"problem.py": problem}))
    assert found.seed()["program.py"] == "def pack(items):\n    pass\n"
    verdict = await judge(found, None)
    assert verdict.failure is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1", "it defines no function score_fn"),
        (
            "def score_fn(f): pass\nFUNCTION_SIGNATURE = open('x').read()",
            "FUNCTION_SIGNATURE is missing, or not a text",
        ),
        ("def score_fn(f): pass\nFUNCTION_SIGNATURE = 'pack(items)'", "has no 'def name(...)' in it"),
        ("def score_fn(f): pass\nFUNCTION_SIGNATURE = 'def f():'", "PROBLEM_DESCRIPTION is missing"),
        (
            "import no_such_package\ndef score_fn(f): pass\nFUNCTION_SIGNATURE = 'def f():'",
            "problem.py needs no_such_package",
        ),
    ],
)
def test_folders_that_can_not_be_run(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        folder_problem(write(tmp_path / "bad", {"problem.py": text}))
    assert says in str(error.value)
    assert "\n" not in str(error.value)
