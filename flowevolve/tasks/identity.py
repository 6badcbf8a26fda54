"""Identifies a task in a run's first event, since the scores of different tasks can't be compared with each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from flowevolve._util.digests import modules_digest, text_digest
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.event_kinds import RunStarted
from flowevolve.core.task import Example, Task


@runtime_checkable
class Digested(Protocol):
    """A task that has more than a seed and examples to be told apart by."""

    def digests(self) -> Mapping[str, str]:
        """Digests of its parts, by name."""


@runtime_checkable
class Adjustable(Protocol):
    """A task with settings that may be others when a run goes on, which its user is told."""

    def adjustable(self) -> Mapping[str, str]:
        """Digests of them, by name."""


def identity(task: Task, algorithm: type[Algorithm] | None = None) -> RunStarted:
    """The task's name, the number of its validation examples, a digest of them that ignores their order, and digests of
    its seed, its training examples and what else it is made of; and of the code of an algorithm that is not ours.
    """
    of_algorithm = None if algorithm is None else modules_digest(algorithm)
    return RunStarted(
        task=task.name,
        examples=len(task.data.val),
        digest=text_digest(sorted(map(_line, task.data.val))),
        digests={
            "prompt": task.seed().id,
            "train": text_digest(sorted(map(_line, task.data.train))),
            **(task.digests() if isinstance(task, Digested) else {}),
            **(task.adjustable() if isinstance(task, Adjustable) else {}),
            **({} if of_algorithm is None else {"algorithm": of_algorithm}),
        },
    )


def difference(before: RunStarted, task: Task) -> str | None:
    """Say how the task that earlier scores are of differs from this one; None if it is the same.

    ``before`` is what a run began with. Fields that it leaves out are not compared.
    """
    after = identity(task)
    if all(getattr(before, name) in (None, getattr(after, name)) for name in ("task", "examples", "digest")):
        return None
    same_size = (before.task, before.examples) == (after.task, after.examples)
    hint = " (if these are the same rows in another order: it is the order that decides which are for validation)"
    return f"of {_words(before)}, not of {_words(after)}{hint if same_size else ''}"


def changed_parts(before: RunStarted, task: Task, algorithm: type[Algorithm]) -> list[str]:
    """What of a task's and an algorithm's digests is another than the run began with: only of those that are known of
    both.

    What is a function's is compared only under the Python that the run began with.
    """
    old, new = before.digests or {}, identity(task, algorithm).digests or {}
    return [
        name
        for name in new
        if name in old and old[name] != new[name] and old[name].rpartition(":")[0] == new[name].rpartition(":")[0]
    ]


def _words(of: RunStarted) -> str:
    examples = "" if of.digest is None else f" with {of.examples} validation examples (digest {of.digest})"
    return f"task {of.task!r}{examples}"


def _line(example: Example) -> str:
    # The rows of a task given as an object may hold values that are not plain data: their types stand in for them.
    return json.dumps([example.id, dict(example.data)], skipkeys=True, default=lambda value: type(value).__name__)
