"""Identifies the code that scores programs, so that whoever resumes a run is told if it has changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from flowevolve._util.digests import code_digest, modules_digest, text_digest
from flowevolve.programs.callable import CallableProblem
from flowevolve.programs.evaluator import EvaluatorProblem
from flowevolve.programs.modules import imported_modules, text_of
from flowevolve.programs.problem import Problem


def scoring_digest(problem: Problem) -> str | None:
    """A digest of the user's code that scores a problem's programs; None if there is none, or its source is not
    available.

    For a problem with an evaluator, these are the evaluator's files, with the modules of the folder that they import,
    and its arguments and thresholds. Data files are not included.
    """
    if isinstance(problem, EvaluatorProblem):
        return text_digest(_of_evaluator(problem))
    if type(problem) is CallableProblem:
        return code_digest(problem.scorer)
    return modules_digest(type(problem))


def _of_evaluator(problem: EvaluatorProblem) -> Iterator[str]:
    for step in problem.steps:
        yield json.dumps([step.arguments, step.at_least])
    for file in dict.fromkeys(_files_named(problem)):
        text = text_of(problem.folder / file)
        if text is not None:
            yield text
            yield from imported_modules(problem.folder, text, Path(file).suffix, hidden=()).values()


def _files_named(problem: EvaluatorProblem) -> Iterator[str]:
    """The words among the arguments of an evaluator that may name a file of its folder."""
    for step in problem.steps:
        for value in step.arguments.values():
            words = value if isinstance(value, list) else [value]
            yield from (word for word in words if isinstance(word, str) and not Path(word).is_absolute())
