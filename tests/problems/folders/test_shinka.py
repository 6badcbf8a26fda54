"""ShinkaEvolve's folders, unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.problems.folders.catalog import folder_problem
from tests.problems.folders.conftest import Judge
from tests.support.folder_samples import SHINKA, write

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "squares", SHINKA)


def test_what_a_folder_is_read_as(folder: Path) -> None:
    problem = folder_problem(folder)
    assert (problem.name, problem.file) == ("squares", "initial.py")
    assert problem.statement.startswith("Make the squares large.\n\nThe program is the file initial.py.")


async def test_it_is_run_aggregated_and_validated(folder: Path, judge: Judge) -> None:
    verdict = await judge(folder_problem(folder), None)
    assert (verdict.value, verdict.failure) == (6.0, None)  # 0 + 0+1 + 0+1+4
    assert verdict.metrics["runs"] == 3.0
    assert "secret" not in verdict.metrics
    assert "text_feedback: larger is better" in verdict.feedback


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("def run_experiment(numbers): return [-1]", "Validation failed: a square is never negative"),
        ("def run_experiment(numbers): return 1 / 0", "ZeroDivisionError: division by zero"),
        ("def other(): pass", "AttributeError: module 'program' has no attribute 'run_experiment'"),
        ("def run_experiment(:", "SyntaxError"),
    ],
)
async def test_programs_that_fail(folder: Path, judge: Judge, program: str, failure: str) -> None:
    verdict = await judge(folder_problem(folder), program)
    assert verdict.failure is not None
    assert failure in verdict.failure
    assert verdict.value == 0.0


@pytest.mark.parametrize(
    ("evaluator", "failure"),
    [
        ("x = 1", "evaluate.py wrote no metrics.json"),
        ("import sys; sys.exit('no data')", "evaluate.py ended with 'no data' and without metrics"),
        ("raise ValueError('so')", "ValueError: so"),
    ],
)
async def test_evaluators_that_fail(tmp_path: Path, judge: Judge, evaluator: str, failure: str) -> None:
    problem = folder_problem(write(tmp_path / "bad", SHINKA, evaluate=evaluator))
    assert failure in str((await judge(problem, None)).failure)


async def test_evaluators_that_write_the_files_themselves(tmp_path: Path, judge: Judge) -> None:
    evaluator = """
import json, sys
from pathlib import Path
folder = Path(sys.argv[sys.argv.index("--results_dir") + 1])
(folder / "metrics.json").write_text(json.dumps({"combined_score": 4.5, "public": {"depth": 2}}))
(folder / "correct.json").write_text(json.dumps({"correct": True, "error": ""}))
"""
    verdict = await judge(folder_problem(write(tmp_path / "own", SHINKA, evaluate=evaluator, run_evo=None)), None)
    assert (verdict.value, verdict.metrics["depth"]) == (4.5, 2.0)


def test_what_there_is_no_stand_in_for_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "bad", SHINKA, evaluate="from shinka.llm import LLMClient")
    with pytest.raises(InputError, match=r"evaluate\.py needs shinka\.llm, which flowevolve has no stand-in for"):
        folder_problem(folder)
