"""A dspy user's metric, with its result checked. dspy itself would count anything that goes wrong as a failed row."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from math import inf, isnan
from numbers import Real

from dspy import Example, Prediction

from flowevolve._util.errors import InputError
from flowevolve.tasks.judging import row_in_words, value_in_words
from flowevolve.tasks.rows import unwrapped

Metric = Callable[..., float | Prediction]


def checked(metric: Metric, refuse: Callable[[InputError], None]) -> Metric:
    """Wrap a metric. If it returns no score, ``refuse`` gets an error that says what it returned, and the row fails."""

    @wraps(metric)
    def judge(example: Example, prediction: Prediction, *more: object, **named: object) -> float | Prediction:
        given = metric(example, prediction, *more, **named)
        score = given.get("score") if isinstance(given, Prediction) else given
        if not isinstance(score, Real) and (plain := unwrapped(score)) is not score:
            score = plain
            given = Prediction(**{**given, "score": plain}) if isinstance(given, Prediction) else plain
        if not isinstance(score, Real) or isnan(score) or score == inf:
            if inspect.iscoroutine(given):
                given.close()  # otherwise Python warns that it was never awaited
            what = (
                f"a Prediction whose score is {value_in_words(score)}"
                if isinstance(given, Prediction)
                else value_in_words(score)
            )
            error = InputError(
                f"metric returned {what}, but has to return a number, or a dspy.Prediction with a score and feedback; "
                f"{row_in_words(dict(example))}"
            )
            refuse(error)
            raise error
        return given

    return judge
