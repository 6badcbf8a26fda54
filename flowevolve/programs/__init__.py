"""Programs as artifacts: the problems they solve, the edits that change them, and the features that describe them."""

from flowevolve.programs.blocks import outside_unchanged
from flowevolve.programs.callable import CallableProblem
from flowevolve.programs.edits import EditError, apply_edit
from flowevolve.programs.evaluator import EvaluatorProblem
from flowevolve.programs.features import FEATURES, features, program_features, syntax_error
from flowevolve.programs.problem import Case, CommandProblem, FunctionProblem, Problem, Verdict, WrongResultError
from flowevolve.programs.task import ProgramTask

__all__ = [
    "FEATURES",
    "CallableProblem",
    "Case",
    "CommandProblem",
    "EditError",
    "EvaluatorProblem",
    "FunctionProblem",
    "Problem",
    "ProgramTask",
    "Verdict",
    "WrongResultError",
    "apply_edit",
    "features",
    "outside_unchanged",
    "program_features",
    "syntax_error",
]
