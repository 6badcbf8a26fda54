"""LEVI's folders: ``problem.py`` with a description, a function's signature, a seed program and ``score_fn``.

Source: levi-evolve 0.1.1. If the folder has a ``run.py``, their names are read from its call of ``evolve_code``, which
gets them as arguments; otherwise they have the names that LEVI's examples use.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve.problems.folders import imports as needs
from flowevolve.problems.folders.files import defined, parsed, texts
from flowevolve.programs.evaluator import TRIED_AT_START, EvaluatorProblem, EvaluatorStep, metric
from flowevolve.programs.modules import imported_modules
from flowevolve.programs.problem import PROGRAM

PROBLEM = "problem.py"
SCORE = "score"
_RUNNER = "run.py"
_CALL = "evolve_code"
_DEFAULTS: Mapping[str, str] = {
    "problem_description": "PROBLEM_DESCRIPTION",
    "function_signature": "FUNCTION_SIGNATURE",
    "seed_program": "SEED_PROGRAM",
    "score_fn": "score_fn",
    "inputs": "INPUTS",
}
"""The arguments of ``evolve_code``, and the names that LEVI's examples use for their values."""
_FUNCTION = re.compile(r"^def\s+(\w+)\s*\(", re.MULTILINE)


def read(folder: Path, worst: float) -> EvaluatorProblem:
    """Raises:
    InputError: naming the file and what is wrong with it.
    """
    file = folder / PROBLEM
    module = parsed(file)
    names, known, functions = _names(folder), texts(module), defined(module)
    if functions is not None and names["score_fn"] not in functions:
        raise InputError(f"{file}: it defines no function {names['score_fn']}, which scores a program's function")
    signature = _text(file, known, names["function_signature"])
    function = _FUNCTION.search(signature)
    if function is None:
        raise InputError(f"{file}: {names['function_signature']} has no 'def name(...)' in it")
    seed = known.get(names["seed_program"], signature)
    inputs = names["inputs"] if functions is not None and names["inputs"] in functions else None
    doubts = needs.check(folder, [file])
    said = _text(file, known, names["problem_description"]).strip()
    wanted = f"The program has to define this function:\n\n{signature.strip()}"
    return EvaluatorProblem(
        name=folder.name,
        statement=f"{said}\n\n{wanted}\n\nHigher scores are better.",
        file=PROGRAM,
        source=seed,
        folder=folder,
        steps=[
            EvaluatorStep(
                "levi",
                {"problem": PROBLEM, "function": function[1], "score": names["score_fn"], "inputs": inputs},
                names["score_fn"],
            )
        ],
        score=metric(SCORE),
        worst=worst,
        modules=imported_modules(folder, seed, Path(PROGRAM).suffix, {PROBLEM}),
        notes=[TRIED_AT_START, *doubts],
    )


def _names(folder: Path) -> dict[str, str]:
    """What the arguments of ``evolve_code`` are called in ``problem.py``."""
    names = dict(_DEFAULTS)
    runner = folder / _RUNNER
    if not runner.is_file():
        return names
    for node in ast.walk(parsed(runner)):
        if isinstance(node, ast.Call) and _called(node.func) == _CALL:
            given = {each.arg: each.value for each in node.keywords if each.arg is not None and each.arg in names}
            if node.args:
                given.setdefault("problem_description", node.args[0])
            for argument, value in given.items():
                name = _called(value.func) if isinstance(value, ast.Call) else _called(value)
                if name is not None:
                    names[argument] = name
            return names
    return names


def _called(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _text(file: Path, known: Mapping[str, str], name: str) -> str:
    if name not in known:
        raise InputError(f"{file}: {name} is missing, or not a text that can be read without running the file")
    return known[name]
