"""Identifies a task in a run's first event, since the scores of different tasks can't be compared with each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

from flowevolve.llm.types import JSON
from flowevolve.tasks.base import Example, Task


def identity(task: Task) -> dict[str, JSON]:
    """The task's name, the number of its validation examples, and a digest of them that ignores their order."""
    digest = blake2b(digest_size=6)
    for line in sorted(map(_line, task.data.val)):
        digest.update(line.encode())
    return {"task": task.name, "examples": len(task.data.val), "digest": digest.hexdigest()}


def difference(before: Mapping[str, JSON], task: Task) -> str | None:
    """Say how the task that earlier scores are of differs from this one; None if it is the same.

    ``before`` is an `identity`. Keys that it lacks, and other keys that it has, are not compared.
    """
    after = identity(task)
    if all(before.get(key, value) == value for key, value in after.items()):
        return None
    return f"of {_words(before)}, not of {_words(after)}"


def _words(of: Mapping[str, JSON]) -> str:
    examples = f" with {of['examples']} validation examples (digest {of['digest']})" if "digest" in of else ""
    return f"task {of.get('task')!r}{examples}"


def _line(example: Example) -> str:
    # The rows of a task given as an object may hold values that are not plain data: their types stand in for them.
    return json.dumps([example.id, dict(example.data)], skipkeys=True, default=lambda value: type(value).__name__)
