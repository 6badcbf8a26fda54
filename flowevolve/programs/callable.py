"""Problems scored by a user's function, which runs in the engine's process and only sees a program's result."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.plugins import LoadError, imported
from flowevolve.programs.evaluator import read_text
from flowevolve.programs.problem import Case, FunctionProblem, Verdict, WrongResultError
from flowevolve.programs.signature import check_call

Scorer = Callable[..., object]
"""``score(result)`` or ``score(result, arguments)``; returns a number, or a mapping with ``score`` and, if it likes,
``feedback`` and further metrics.
"""


class CallableProblem(FunctionProblem):
    """Programs whose function ``entry`` is called in the sandbox; ``score`` scores the result outside, in a thread.

    ``score`` gets untrusted data. If it raises an exception, the program has failed, and the message is feedback.
    """

    def __init__(
        self,
        score: Scorer,
        source: str,
        entry: str,
        *,
        statement: str = "",
        cases: Sequence[Case] = (Case("one"),),
        name: str | None = None,
        worst: float = 0.0,
        timeout: float | None = None,
        memory_mb: int | None = None,
    ) -> None:
        self._score = score
        self._takes_arguments = _takes_two(score)
        self.source = source
        self.entry = entry
        self.statement = statement or f"Improve the function {entry}, so that what it returns scores higher."
        self.cases = cases
        self.name = name or str(getattr(score, "__name__", entry))
        self.worst = worst
        self.timeout = timeout
        self.memory_mb = memory_mb

    def score(self, case: Case, result: JSON) -> Verdict:
        try:
            return _verdict(self._score(result, case.arguments) if self._takes_arguments else self._score(result))
        except WrongResultError:
            raise
        except (Exception, SystemExit) as error:  # the user's function may raise anything on untrusted data
            raise WrongResultError(f"{type(error).__name__}: {error}") from error

    async def scored(self, case: Case, result: JSON) -> Verdict:
        return await clock.in_thread(self.score, case, result)


def callable_problem(
    evaluator: str,
    program: Path,
    entry: str,
    statement: str = "",
    cases: tuple[dict[str, JsonValue], ...] = (),
    worst: float = 0.0,
) -> CallableProblem:
    """The problem of a configuration: ``evaluator`` is ``package.module:function``, ``program`` the file of the seed.

    Each of ``cases`` has the arguments of ``entry`` by name. Without cases, it is called once and without arguments.

    Raises:
        InputError: if the function can't be imported, the seed can't be read, or its function does not take a case's
            arguments.
    """
    try:
        score = imported(evaluator)
    except LoadError as error:
        raise InputError(f"task.evaluator: can't use {evaluator!r}: {error}") from error
    if not callable(score):
        raise InputError(f"task.evaluator: {evaluator!r} is of type {type(score).__name__}, not a function")
    source = read_text(program)
    for given in cases or ({},):
        check_call(source, entry, given, "task.cases")
    rows = tuple(Case(str(number), each) for number, each in enumerate(cases)) or (Case("one"),)
    return CallableProblem(score, source, entry, statement=statement, cases=rows, worst=worst)


def _verdict(returned: object) -> Verdict:
    """Raises: WrongResultError if the scorer returned no finite score."""
    fields = returned if isinstance(returned, Mapping) else {"score": returned}
    value = _number(fields.get("score"))
    if value is None:
        raise WrongResultError(f"the scorer returned no finite score: {returned!r:.200}")
    metrics = {str(name): number for name, each in fields.items() if (number := _number(each)) is not None}
    feedback = str(fields.get("feedback") or f"It scores {value:.6g}.")
    return Verdict(value, feedback, None, metrics)


def _number(value: object) -> float | None:
    """A finite number, which may be in an array of length 1; None for anything else."""
    try:
        plain = value.item() if hasattr(value, "item") else value
        return float(plain) if isinstance(plain, int | float) and math.isfinite(plain) else None
    except (
        ValueError,
        OverflowError,
        TypeError,
        RuntimeError,
    ):  # the last two come from other libraries than numpy
        return None


def _takes_two(function: Scorer) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True
