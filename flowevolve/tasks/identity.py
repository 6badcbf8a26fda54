"""Identifies a task in a run's first event, since the scores of different tasks can't be compared with each other."""

from __future__ import annotations

import json
from hashlib import blake2b

from flowevolve.core.event_kinds import RunStarted
from flowevolve.core.task import Example, Task


def identity(task: Task) -> RunStarted:
    """The task's name, the number of its validation examples, and a digest of them that ignores their order."""
    digest = blake2b(digest_size=6)
    for line in sorted(map(_line, task.data.val)):
        digest.update(line.encode())
    return RunStarted(task=task.name, examples=len(task.data.val), digest=digest.hexdigest())


def difference(before: RunStarted, task: Task) -> str | None:
    """Say how the task that earlier scores are of differs from this one; None if it is the same.

    ``before`` is what a run began with. Fields that it leaves out are not compared.
    """
    after = identity(task)
    if all(getattr(before, name) in (None, getattr(after, name)) for name in ("task", "examples", "digest")):
        return None
    return f"of {_words(before)}, not of {_words(after)}"


def _words(of: RunStarted) -> str:
    examples = "" if of.digest is None else f" with {of.examples} validation examples (digest {of.digest})"
    return f"task {of.task!r}{examples}"


def _line(example: Example) -> str:
    # The rows of a task given as an object may hold values that are not plain data: their types stand in for them.
    return json.dumps([example.id, dict(example.data)], skipkeys=True, default=lambda value: type(value).__name__)
