"""Programs as artifacts: what they are written for, how a model's edits change them, and what they look like."""

from flowevolve.programs.problem import Case, FunctionProblem, Problem, Verdict, WrongResultError

__all__ = ["Case", "FunctionProblem", "Problem", "Verdict", "WrongResultError"]
