"""Programs as artifacts: what they are written for, how a model's edits change them, and what they look like."""

from flowevolve.programs.blocks import outside_unchanged as outside_unchanged
from flowevolve.programs.callable import CallableProblem as CallableProblem
from flowevolve.programs.edits import EditError as EditError
from flowevolve.programs.edits import apply_edits as apply_edits
from flowevolve.programs.evaluator import EvaluatorProblem as EvaluatorProblem
from flowevolve.programs.features import FEATURES as FEATURES
from flowevolve.programs.features import features as features
from flowevolve.programs.features import program_features as program_features
from flowevolve.programs.features import syntax_error as syntax_error
from flowevolve.programs.problem import Case as Case
from flowevolve.programs.problem import CommandProblem as CommandProblem
from flowevolve.programs.problem import FunctionProblem as FunctionProblem
from flowevolve.programs.problem import Problem as Problem
from flowevolve.programs.problem import Verdict as Verdict
from flowevolve.programs.problem import WrongResultError as WrongResultError
from flowevolve.programs.task import ProgramTask as ProgramTask
