"""Which changes of the code that scores programs are noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowevolve.problems.packing import CirclePacking
from flowevolve.programs import CallableProblem, ProgramTask
from flowevolve.programs.evaluator import command_problem

FILES = {
    "seed.py": "VALUE = 3\n",
    "score.py": "from tools.rule import most\nprint(most)\n",
    "tools/rule.py": "most = 4\n",
    "README.md": "About.\n",
}


def digests(folder: Path, command: tuple[str, ...] = ("python", "./score.py", "{program}", "/bin/sh")) -> object:
    return ProgramTask(command_problem(command, folder / "seed.py")).adjustable()


@pytest.mark.parametrize(
    ("file", "noticed"), [("score.py", True), ("tools/rule.py", True), ("README.md", False), ("other.py", False)]
)
def test_the_evaluator_has_changed_with_its_files_and_the_modules_that_they_import(
    tmp_path: Path, file: str, *, noticed: bool
) -> None:
    (tmp_path / "tools").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    before = digests(tmp_path)
    assert digests(tmp_path) == before
    (tmp_path / file).write_text("most = 5\n")
    assert (digests(tmp_path) != before) == noticed


def test_the_evaluator_has_changed_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "seed.py").write_text("VALUE = 3\n")
    assert digests(tmp_path) != digests(tmp_path, ("python", "score.py", "{program}", "--strict"))


def test_a_function_has_changed_with_its_code() -> None:
    source = "def solve():\n    return 1\n"
    scorers = (lambda result: result, lambda result: result, lambda result: -result)
    same, again, other = (ProgramTask(CallableProblem(each, source, "solve")).adjustable() for each in scorers)
    assert same == again != other


def test_problems_that_ship_have_no_code_of_the_users() -> None:
    assert ProgramTask(CirclePacking(4)).adjustable() == {}
