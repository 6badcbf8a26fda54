"""OpenEvolve's folders: ``initial_program.*``, ``evaluator.py`` with ``evaluate``, ``config.yaml``.

Source: openevolve 0.4.0. What differs here: a stage runs in a process of its own, and a program that fails in any stage
has failed, whereas OpenEvolve gives it the score of the stages before.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.problems.folders import imports as needs
from flowevolve.problems.folders.files import defined, parsed, readme, the_program
from flowevolve.problems.folders.settings import FolderSettings, read_settings
from flowevolve.programs.evaluator import TRIED_AT_START, EvaluatorProblem, EvaluatorStep, metric_or_mean, read_text
from flowevolve.programs.modules import imported_modules

EVALUATOR = "evaluator.py"
PROGRAM = "initial_program"
FUNCTION = "evaluate"
STAGES = ("evaluate_stage1", "evaluate_stage2", "evaluate_stage3")
SCORE = "combined_score"
_SUPPLIED = {"openevolve", "openevolve.evaluation_result"}
_TEMPLATES = {"system_message", "evaluator_system_message"}
"""Names of OpenEvolve's own prompts, which are not sent from here."""


def read(folder: Path, worst: float) -> EvaluatorProblem:
    """Raises:
    InputError: naming the file and what is wrong with it.
    """
    program = the_program(folder, PROGRAM)
    settings, file = read_settings(folder)
    functions = defined(parsed(folder / EVALUATOR))
    if functions is not None and FUNCTION not in functions:
        raise InputError(f"{folder / EVALUATOR}: it defines no function {FUNCTION}(program_path)")
    doubts = needs.check(folder, [folder / EVALUATOR, program], _SUPPLIED)
    return EvaluatorProblem(
        name=folder.name,
        statement=_statement(folder, program, settings),
        file=program.name,
        source=read_text(program),
        folder=folder,
        steps=_steps(settings, functions or set()),
        score=metric_or_mean(SCORE, settings.database.feature_dimensions),
        worst=worst,
        modules=imported_modules(folder, read_text(program), program.suffix, {EVALUATOR}),
        quoted=min(settings.prompt.max_artifact_bytes, 3000),
        notes=[TRIED_AT_START, *_left_over(settings, file), *doubts],
    )


def _steps(settings: FolderSettings, functions: AbstractSet[str]) -> list[EvaluatorStep]:
    """A step for each stage, in order; a single step for the whole evaluation without a cascade or a first stage."""
    evaluation = settings.evaluator
    if not evaluation.cascade_evaluation or STAGES[0] not in functions:
        given: dict[str, JSON] = {"evaluator": EVALUATOR, "function": FUNCTION, "keywords": evaluation.evaluator_args}
        return [EvaluatorStep("openevolve", given, FUNCTION)]
    steps: list[EvaluatorStep] = []
    for number, stage in enumerate(STAGES):
        if stage not in functions:
            break
        at_least = evaluation.cascade_thresholds[number] if number < len(evaluation.cascade_thresholds) else None
        steps.append(
            EvaluatorStep("openevolve", {"evaluator": EVALUATOR, "function": stage, "keywords": {}}, stage, at_least)
        )
        if at_least is None:
            break
    return steps


def _statement(folder: Path, program: Path, settings: FolderSettings) -> str:
    message = settings.prompt.system_message.strip()
    task = message if message and message not in _TEMPLATES else readme(folder).strip()
    words = (
        f"The program is the file {program.name}. An evaluator runs it and gives metrics: the score is {SCORE} where "
        "there is one, else the mean of the metrics. Higher is better."
    )
    return f"{task}\n\n{words}" if task else words


def _left_over(settings: FolderSettings, file: Path | None) -> list[str]:
    keys = settings.left_over()
    if file is None or not keys:
        return []
    return [f"{file.name}: these settings have no counterpart here, and have no effect: {', '.join(keys)}"]
