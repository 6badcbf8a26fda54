"""What the scores of a run are of, as its first event tells it: scores of another task can't be compared with them."""

from __future__ import annotations

import json
from hashlib import blake2b

from flowevolve.event_kinds import RunStarted
from flowevolve.tasks.base import Example, Task


def identity(task: Task) -> RunStarted:
    """The task's name, how many validation examples it has, and a digest of them, whatever their order."""
    digest = blake2b(digest_size=6)
    for line in sorted(map(_line, task.data.val)):
        digest.update(line.encode())
    return RunStarted(task=task.name, examples=len(task.data.val), digest=digest.hexdigest())


def difference(before: RunStarted, task: Task) -> str | None:
    """What scores are of that were made in a run that began with ``before``, and what for a task; None if that is the
    same. What ``before`` does not say is not compared.
    """
    after = identity(task)
    if all(getattr(before, name) in (None, getattr(after, name)) for name in ("task", "examples", "digest")):
        return None
    return f"of {_words(before)}, not of {_words(after)}"


def _words(of: RunStarted) -> str:
    examples = "" if of.digest is None else f" with {of.examples} validation examples (digest {of.digest})"
    return f"task {of.task!r}{examples}"


def _line(example: Example) -> str:
    return json.dumps([example.id, dict(example.data)], skipkeys=True, default=_type)


def _type(value: object) -> str:
    """Stands for what is no plain data, which a task given as an object may hold."""
    return type(value).__name__
