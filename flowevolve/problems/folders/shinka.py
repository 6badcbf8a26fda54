"""ShinkaEvolve's folders: ``initial.*`` and ``evaluate.py``, which writes ``metrics.json`` and ``correct.json``.

Source: shinka-evolve 0.0.7. In the sandbox, a function of ours replaces ``shinka.core.run_shinka_eval``.
"""

from __future__ import annotations

import ast
from pathlib import Path

from flowevolve.problems.folders import imports as needs
from flowevolve.problems.folders.files import constant, parsed, readme, texts, the_program
from flowevolve.programs.evaluator import TRIED_AT_START, EvaluatorProblem, EvaluatorStep, metric, read_text
from flowevolve.programs.modules import imported_modules

EVALUATOR = "evaluate.py"
PROGRAM = "initial"
SCORE = "combined_score"
_RUNNER = "run_evo.py"
_STATEMENT = "task_sys_msg"
_SUPPLIED = {"shinka", "shinka.core", "shinka.core.wrap_eval"}


def read(folder: Path, worst: float) -> EvaluatorProblem:
    """Raises:
    InputError: naming the file and what is wrong with it.
    """
    program = the_program(folder, PROGRAM)
    doubts = needs.check(folder, [folder / EVALUATOR, program], _SUPPLIED)
    words = f"The program is the file {program.name}. It is run and measured; the score is {SCORE}, higher is better."
    task = _task(folder)
    return EvaluatorProblem(
        name=folder.name,
        statement=f"{task}\n\n{words}" if task else words,
        file=program.name,
        source=read_text(program),
        folder=folder,
        steps=[EvaluatorStep("shinka", {"evaluator": EVALUATOR}, EVALUATOR)],
        score=metric(SCORE),
        worst=worst,
        modules=imported_modules(folder, read_text(program), program.suffix, {EVALUATOR}),
        notes=[TRIED_AT_START, *doubts],
    )


def _task(folder: Path) -> str:
    """What ``run_evo.py`` tells models about the task, or else the README."""
    runner = folder / _RUNNER
    if runner.is_file():
        module = parsed(runner)
        known = texts(module)
        for node in ast.walk(module):
            if isinstance(node, ast.keyword) and node.arg == _STATEMENT:
                said = constant(node.value, dict(known))
                if isinstance(said, str):
                    return said.strip()
        said = next((text for name, text in known.items() if name.lower().endswith(_STATEMENT)), None)
        if said is not None:
            return said.strip()
    return readme(folder).strip()
