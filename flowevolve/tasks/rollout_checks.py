"""Checks that what a task returned has the types of the protocol, before it is used."""

from __future__ import annotations

from math import isfinite
from typing import TypeVar

from flowevolve._util.errors import InputError
from flowevolve.core.task import Call, Example, Measured, Rollout, Score, Task

MARGIN = 1e-6
"""The most by which a score may be out of its range, as a sum of fractions can be through rounding."""
T = TypeVar("T")


def check_rollout(rollout: object, example: Example, task: Task) -> Rollout:
    """Check that a value is a rollout of this example of a task, and return it.

    Raises:
        InputError: if its score is not from 0 to 1, unless the task is `Measured`.
        TypeError: if it is not a rollout, or one of its parts has the wrong type.
        ValueError: if it is the rollout of another example, or one of its score's metrics is not finite, unless the
            task is `Measured`.
    """
    found = _expect(rollout, Rollout, "what rollout() returned")
    score = _expect(found.score, Score, "the rollout's score")
    if isfinite(score.value) and not (-MARGIN <= score.value <= 1 + MARGIN or isinstance(task, Measured)):
        raise InputError(
            f"task {task.name!r}: example {example.id!r} has the score {score.value:g}, but scores have to be from 0 "
            "to 1; divide it by the highest score that there can be"
        )
    _expect(found.output, str, "the rollout's output")
    _expect(score.feedback, str, "the score's feedback")
    for name, value in score.metrics.items():
        if not isfinite(value) and not isinstance(task, Measured):
            raise ValueError(f"the score's metrics[{name!r}] is {value}; leave it out where there is none")
    for number, call in enumerate(found.calls):
        _check_call(call, f"the rollout's calls[{number}]")
    if found.example_id != example.id:
        raise ValueError(f"the rollout is of example {found.example_id!r}, but was asked of {example.id!r}")
    return found


def _check_call(value: object, name: str) -> None:
    call = _expect(value, Call, name)
    _expect(call.component, str, f"{name}.component")
    _expect(call.output, str, f"{name}.output")
    for key, text in call.inputs.items():
        _expect(text, str, f"{name}.inputs[{key!r}]")


def _expect(value: object, kind: type[T], name: str) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be of type {kind.__name__}, but is of type {type(value).__name__}")
    return value
