"""What the scores of a run are of, as its first event tells it: scores of another task can't be compared with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b

from flowevolve.llm.types import JSON
from flowevolve.tasks.base import Example, Task


def identity(task: Task) -> dict[str, JSON]:
    """The task's name, how many validation examples it has, and a digest of them, whatever their order."""
    digest = blake2b(digest_size=6)
    for line in sorted(map(_line, task.data.val)):
        digest.update(line.encode())
    return {"task": task.name, "examples": len(task.data.val), "digest": digest.hexdigest()}


def difference(before: Mapping[str, JSON], task: Task) -> str | None:
    """What scores are of that were made for ``before`` and what for a task; None if that is the same.

    ``before`` may have other keys, and may lack some of an `identity`: these are not compared.
    """
    after = identity(task)
    if all(before.get(key, value) == value for key, value in after.items()):
        return None
    return f"of {_words(before)}, not of {_words(after)}"


def _words(of: Mapping[str, JSON]) -> str:
    examples = f" with {of['examples']} validation examples (digest {of['digest']})" if "digest" in of else ""
    return f"task {of.get('task')!r}{examples}"


def _line(example: Example) -> str:
    return json.dumps([example.id, dict(example.data)], skipkeys=True, default=_type)


def _type(value: object) -> str:
    """Stands for what is no plain data, which a task given as an object may hold."""
    return type(value).__name__
