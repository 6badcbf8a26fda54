"""Problems scored by a user's function, which runs outside of the sandbox and sees only a program's result."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.plugins import LoadError, folder_of, imported
from flowevolve.programs.evaluator import read_text
from flowevolve.programs.problem import Case, FunctionProblem, Verdict, WrongResultError
from flowevolve.programs.signature import check_call, check_entry
from flowevolve.sandbox import Sandbox
from flowevolve.sandbox.evaluators import TrustedCall

Scorer = Callable[..., object]
"""Called as ``score(result)`` or ``score(result, arguments)``; returns a number, or a mapping with ``score`` and
optionally ``feedback`` and further metrics.
"""


@dataclass(frozen=True, slots=True)
class NamedScorer:
    """A scorer that is called in a process of its own, where programs run, and killed at its time limit."""

    name: str
    """``package.module:function``."""
    folder: str | None
    """The folder of its module, if that is not on Python's path."""
    timeout: float


class CallableProblem(FunctionProblem):
    """Programs whose function ``entry`` is called in the sandbox. ``score`` scores the result outside of it: in a
    thread or, if ``elsewhere`` is given, in a process that imports the scorer by name.

    ``score`` gets untrusted data. If it raises an exception, the program has failed, and the message is feedback.
    """

    in_thread = True

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
        elsewhere: NamedScorer | None = None,
    ) -> None:
        self.scorer = score
        self._elsewhere = elsewhere
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
            return _verdict(self.scorer(result, case.arguments) if self._takes_arguments else self.scorer(result))
        except WrongResultError:
            raise
        except (Exception, SystemExit) as error:  # the user's function may raise anything on untrusted data
            raise WrongResultError(f"{type(error).__name__}: {error}") from error

    async def scored(self, case: Case, result: JSON, sandbox: Sandbox) -> Verdict:
        if self._elsewhere is None:
            return await super().scored(case, result, sandbox)
        return await _scored_elsewhere(self._elsewhere, case, result, sandbox)


def callable_problem(
    evaluator: str,
    program: Path,
    entry: str,
    statement: str = "",
    cases: tuple[dict[str, JsonValue], ...] = (),
    worst: float = 0.0,
    evaluator_timeout: float | None = None,
) -> CallableProblem:
    """The problem of a configuration: ``evaluator`` is ``package.module:function``, ``program`` the file of the seed.

    With ``evaluator_timeout``, the evaluator is called in a process of its own, and killed after this many seconds.
    Each of ``cases`` has the arguments of the program's function ``entry`` by name. Without cases, that function is
    called once, without arguments.

    Raises:
        InputError: if the evaluator can't be imported, the timeout is not above 0, the seed can't be read, its
            function is misspelt, or it does not take a case's arguments.
    """
    score = _imported(evaluator)
    if evaluator_timeout is not None and not 0 < evaluator_timeout < math.inf:
        raise InputError(f"task.evaluator_timeout is {evaluator_timeout:g} s, but has to be above 0, and finite")
    elsewhere = None
    if evaluator_timeout is not None:
        module = sys.modules[evaluator.partition(":")[0].strip().partition(".")[0]]
        elsewhere = NamedScorer(evaluator, folder_of(module), evaluator_timeout)
    source = read_text(program)
    check_entry(source, entry, "task.entry")
    for given in cases or ({},):
        check_call(source, entry, given, "task.cases")
    rows = tuple(Case(str(number), each) for number, each in enumerate(cases)) or (Case("one"),)
    return CallableProblem(score, source, entry, statement=statement, cases=rows, worst=worst, elsewhere=elsewhere)


def _imported(evaluator: str) -> Scorer:
    """Raises: InputError if the evaluator is not a function that can be imported."""
    try:
        score = imported(evaluator)
    except LoadError as error:
        raise InputError(f"task.evaluator: can't use {evaluator!r}: {error}") from error
    if not callable(score):
        raise InputError(f"task.evaluator: {evaluator!r} is of type {type(score).__name__}, not a function")
    return score


async def _scored_elsewhere(scorer: NamedScorer, case: Case, result: JSON, sandbox: Sandbox) -> Verdict:
    """Raises: WrongResultError if the scorer returns no score in time; InputError if it can't be called there."""
    given = dict(case.arguments) if isinstance(case.arguments, Mapping) else list(case.arguments)
    function, arguments = f"{__name__}:score_by_name", [scorer.name, given, result]
    (outcome,) = await sandbox.run_job(
        TrustedCall(function, arguments, scorer.timeout, scorer.folder, imports=[scorer.name])
    )
    if outcome.status == "timeout":
        raise WrongResultError(f"the evaluator took more than {scorer.timeout:g} s (task.evaluator_timeout)")
    if outcome.status == "killed":
        raise WrongResultError("the evaluator's process was killed, by itself or for want of memory")
    answer = outcome.result
    if not isinstance(answer, dict):
        last = " ".join(outcome.stderr.strip().splitlines()[-1:]).removeprefix(f"{LoadError.__module__}.LoadError: ")
        raise InputError(f"task.evaluator can't be called where programs run: {last}")
    if "wrong" in answer:
        raise WrongResultError(str(answer["wrong"]))
    return _verdict(answer["verdict"])


def score_by_name(evaluator: str, arguments: dict[str, JSON] | list[JSON], result: JSON) -> dict[str, JSON]:
    """Call a scorer, and return as plain data its ``verdict`` or why the result is ``wrong``."""
    problem = CallableProblem(_imported(evaluator), "", "")
    try:
        verdict = problem.score(Case("", arguments), result)
    except WrongResultError as error:
        return {"wrong": str(error)}
    return {"verdict": {**verdict.metrics, "score": verdict.value, "feedback": verdict.feedback}}


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
