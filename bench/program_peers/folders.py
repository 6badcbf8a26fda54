"""Problem folders in the form of each system, written from one problem: the same program, scoring and statement."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

Form = Literal["openevolve", "shinka", "levi"]

HERE = Path(__file__).parent
PROBLEMS = tuple(sorted(path.parent.name for path in (HERE / "problems").glob("*/scoring.py")))
PROGRAM = "initial_program.py"
_FILES: Mapping[Form, Mapping[str, str]] = {
    "openevolve": {"evaluator.py": "evaluator.py"},
    "shinka": {"evaluate.py": "evaluate.py"},
    "levi": {"problem.py": "problem.py", "run.py": "run.py"},
}
"""The files of each form, and the files in ``forms`` that they are copied from."""


def write_folder(problem: str, form: Form, folder: Path) -> None:
    """Write a problem in a form. What the form needs beyond the program and its scoring is copied from ``forms``."""
    source = HERE / "problems" / problem
    folder.mkdir(parents=True)
    shutil.copy(source / "scoring.py", folder)
    shutil.copy(source / PROGRAM, folder / ("initial.py" if form == "shinka" else PROGRAM))
    for name, origin in {"judging.py": "judging.py", **_FILES[form]}.items():
        shutil.copy(HERE / "forms" / origin, folder / name)
    if form == "openevolve":
        (folder / "config.yaml").write_text(json.dumps({"prompt": {"system_message": statement(problem)}}))


def statement(problem: str) -> str:
    """What the problem asks for, in words."""
    return ast.get_docstring(ast.parse(_scoring(problem))) or ""


def entry(problem: str) -> str:
    """The name of the function that a program has to have."""
    found = re.search(r'^ENTRY = "(\w+)"$', _scoring(problem), re.MULTILINE)
    assert found is not None
    return found[1]


def _scoring(problem: str) -> str:
    return (HERE / "problems" / problem / "scoring.py").read_text(encoding="utf-8")
