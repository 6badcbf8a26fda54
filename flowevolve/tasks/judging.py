"""A user's metric: what it may be, what it may return, and how rows are handled on which it or a program fails."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Awaitable, Callable, Mapping
from math import isfinite, isnan
from typing import Any, Literal

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import EndedInThreadError, FlowevolveError, InputError, TaskFailedError, with_line
from flowevolve._util.tasks import stray_cancellation_is_an_error
from flowevolve._util.user_warnings import warn_user
from flowevolve._util.waits import Wait
from flowevolve.core.task import Example, Score
from flowevolve.tasks.blocking import BlockingWatch
from flowevolve.tasks.rollout_checks import MARGIN
from flowevolve.tasks.rows import GivenRow, RowType, unwrapped

Judged = bool | float | tuple[float, str] | Score
Metric = Callable[[RowType, str], Judged | Awaitable[Judged]]
"""Scores the output for a row: from 0 to 1, and perhaps with feedback in words."""
OnError = Literal["stop", "count"]

FAILURES_BEFORE_GIVING_UP = 10
"""A function that has failed this often and never worked is considered broken: the run ends in spite of ``"count"``."""
_ADVICE = 'if the output is at fault, let the metric return 0 and say why, as in return 0.0, "This is no JSON."'


class FunctionErrors:
    """Handles the errors of a user's function. With ``on_error`` ``"count"``, a row on which it fails has the score 0,
    and a warning reports the first such row; with ``"stop"``, the run ends.

    ``name`` is the function's name in messages, and ``advice`` says what to do about a function that fails on every
    row.

    Raises:
        InputError: if ``on_error`` is neither of the two.
    """

    def __init__(self, name: str, advice: str, on_error: OnError) -> None:
        if on_error not in ("stop", "count"):
            raise InputError(f"on_error is {on_error!r}; give 'stop' or 'count'")
        self._name = name
        self._advice = advice
        self._counts = on_error == "count"
        self._failures = 0
        self._worked = self._failed_on_seed = False

    def worked(self) -> None:
        """Note that the function has worked on a row."""
        self._worked = True

    def score(
        self, error: Exception, example: Example, place: str, *, of_seed: bool, output: str | None = None
    ) -> Score:
        """Return the score of a row on which the function has raised an error. ``place`` says where the user has the
        row, and ``output`` is what a metric was to score.

        Raises:
            TaskFailedError: as `failed`.
        """
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        return self.failed(with_line(error), example, place, of_seed=of_seed, output=output, cause=error)

    def failed(
        self,
        problem: str,
        example: Example,
        place: str,
        *,
        of_seed: bool,
        output: str | None = None,
        cause: Exception | None = None,
    ) -> Score:
        """Return the score of a row on which the function has failed in the way that ``problem`` names.

        A function is considered broken only if it has failed with the seed (``of_seed``), with which runs begin: in a
        resumed run, it may have worked before.

        Raises:
            TaskFailedError: if ``on_error`` is ``"stop"``, or the function is considered broken.
        """
        why = f"{self._name}: {place}: {problem}"
        given = row_in_words(example.data) + ("" if output is None else f"; the output is {output!r:.100}")
        if not self._counts:
            raise TaskFailedError(f"{why}; {given}; with on_error='count' such rows score 0 instead") from cause
        self._failures += 1
        self._failed_on_seed |= of_seed
        if self._failed_on_seed and not self._worked and self._failures >= FAILURES_BEFORE_GIVING_UP:
            raise TaskFailedError(
                f"{why}; {given}; the {self._name} has failed on each of the first "
                f"{self._failures} rows, so it says nothing about the prompt; {self._advice}"
            ) from cause
        if self._failures == 1:
            warn_user(f"{why}; {given}; this row and others on which it fails score 0, as on_error is 'count'")
        return Score(0.0, why, passed=False, failure=why)


class Judge:
    """Calls a metric.

    Raises:
        InputError: if the metric is not a function of a row and an output.
    """

    def __init__(self, metric: Metric[Any], on_error: OnError) -> None:
        if inspect.isclass(metric) or not callable(metric):
            raise InputError(
                f"metric is {value_in_words(metric)}; give a function of a row and an output that returns a score"
            )
        check_arity(metric, "metric", "a row and an output")
        self.metric = metric
        self._errors = FunctionErrors("metric", _ADVICE, on_error)
        self._blocking = BlockingWatch("metric")

    async def score(
        self, row: GivenRow, output: str, *, example: Example, place: str, expected: str, of_seed: bool
    ) -> Score:
        """Return the score of an output. ``place`` says where the user has the row; ``expected`` is feedback if the
        metric gives none.

        If the metric returns no score, it has failed on the row, as if it had raised an error. A number outside of 0
        to 1 ends the run in any case: the metric has another scale, and to count its best outputs as 0 would mislead.
        So does a Score with a further metric that is not finite: the row has a score, which would be lost.

        Raises:
            InputError: if the metric returned a number outside of 0 to 1, or a further metric that is not finite.
            TaskFailedError: as `FunctionErrors.failed`.
        """
        try:
            async with stray_cancellation_is_an_error():
                with Wait(f"metric, {place}"):
                    judged = await self._judged(row, output)
        except EndedInThreadError as error:
            raise TaskFailedError(f"metric: {place}: it {error.what}; {row_in_words(example.data)}") from error.ended
        except FlowevolveError:
            raise
        except Exception as error:  # noqa: BLE001 - a user's metric may raise anything
            return self._errors.score(error, example, place, of_seed=of_seed, output=output)
        try:
            score = _as_score(judged, place, example, expected)
        except _NoScoreError as error:
            return self._errors.failed(str(error), example, place, of_seed=of_seed, output=output)
        self._errors.worked()
        return score

    async def _judged(self, row: GivenRow, output: str) -> Judged:
        """What the metric returns. It is called in a thread, unless it is async."""
        asynchronous = inspect.iscoroutinefunction(self.metric)
        judged = self.metric(row, output) if asynchronous else await in_thread(self.metric, row, output)
        return await self._blocking.result(judged) if inspect.isawaitable(judged) else judged


def check_arity(function: Callable[..., object], what: str, takes: str) -> None:
    """Raises: InputError if a function can't be called with two arguments."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        raise InputError(f"{what} takes {inspect.signature(function)}, but is called with {takes}") from None
    except ValueError:  # a builtin without a signature
        return


class _NoScoreError(Exception):
    """What a metric returned is no score. The message says what it returned, and what it has to return."""


def _as_score(judged: object, place: str, example: Example, expected: str) -> Score:
    """Raises:
    _NoScoreError: if a metric's result is no score.
    InputError: if it has a number outside of 0 to 1, or a further metric that is not finite.
    """
    if isinstance(judged, Score):
        _check_score(judged, place, example)
        return judged
    value, feedback = judged if isinstance(judged, tuple) and len(judged) == 2 else (judged, "")
    value = unwrapped(value)
    if not isinstance(value, bool | int | float) or not isinstance(feedback, str):
        hint = "; did it forget to return?" if judged is None else ""
        raise _NoScoreError(
            f"it returned {value_in_words(judged)}, but has to return a bool, a number from 0 to 1, or a tuple of such "
            f"a number and feedback in words{hint}"
        )
    _check_number(value, str(value), place, example)
    words = feedback or f"Score: {float(value):g} of 1." + (f"\n{expected}" if expected else "")
    return Score(float(value), words, passed=value >= 1)


def _check_score(score: Score, place: str, example: Example) -> None:
    """Raises:
    _NoScoreError: if its value is NaN, or its feedback no text.
    InputError: if its value is outside of 0 to 1, or one of its metrics is no finite number.
    """
    feedback: object = score.feedback
    if not isinstance(feedback, str):
        raise _NoScoreError(
            f"it returned a Score whose feedback is {value_in_words(feedback)}, but feedback has to be words, and may "
            "be empty"
        )
    _check_number(score.value, f"a Score whose value is {score.value}", place, example)
    for name, number in score.metrics.items():
        if not isfinite(number):
            raise InputError(
                f"metric: {place}: it returned a Score whose metric {name!r} is {number}; leave {name!r} out of such a "
                f"row's Score; {row_in_words(example.data)}"
            )


def _check_number(value: float, returned: str, place: str, example: Example) -> None:
    """Check the number of what a metric returned, which is ``returned`` in words.

    Raises:
        InputError: if it is outside of 0 to 1, by more than rounding explains.
        _NoScoreError: if it is NaN.
    """
    if value < -MARGIN or value > 1 + MARGIN:
        raise InputError(
            f"metric: {place}: it returned {returned}, but scores have to be from 0 to 1; {row_in_words(example.data)}"
        )
    if isnan(value):
        raise _NoScoreError(f"it returned {returned}, but has to return a number from 0 to 1")


def row_in_words(row: Mapping[str, object]) -> str:
    """A row on one line, with long values cut."""
    return f"the row is {reprlib.repr(dict(row))}"


def value_in_words(value: object) -> str:
    """A value that is of no use, with its type, on one line."""
    return "a class" if inspect.isclass(value) else f"{value!r:.60} ({type(value).__name__})"
