"""Finds out which system a problem folder belongs to, and reads the problem in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from flowevolve._util.errors import InputError
from flowevolve.problems.folders import levi, openevolve, shinka
from flowevolve.programs.evaluator import EvaluatorProblem

System = Literal["openevolve", "shinka", "levi"]

_MARKS: dict[System, str] = {"openevolve": openevolve.EVALUATOR, "shinka": shinka.EVALUATOR, "levi": levi.PROBLEM}
"""The file by which a folder's system is recognized."""
_READERS: dict[System, Callable[[Path, float], EvaluatorProblem]] = {
    "openevolve": openevolve.read,
    "shinka": shinka.read,
    "levi": levi.read,
}


def folder_problem(folder: Path, worst: float = 0.0) -> EvaluatorProblem:
    """The problem in a folder. ``worst`` is the score of programs that fail.

    Raises:
        InputError: if the folder is in no known form, or its files lack what the form requires or need what is not
            available here.
    """
    return _READERS[system_of(folder)](folder.resolve(), worst)


def system_of(folder: Path) -> System:
    """Raises: InputError if the folder does not exist, or belongs to no known system."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; if it has moved, set task.folder to where it is now")
    for system in get_args(System):
        if (folder / _MARKS[system]).is_file():
            found: System = system
            return found
    raise InputError(
        f"{folder}: there is no problem in this folder; OpenEvolve's have {openevolve.EVALUATOR} and "
        f"{openevolve.PROGRAM}.*, ShinkaEvolve's {shinka.EVALUATOR} and {shinka.PROGRAM}.*, LEVI's {levi.PROBLEM}"
    )
