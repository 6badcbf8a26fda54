"""Identifies a task in a run's first event, since the scores of different tasks can't be compared with each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from flowevolve._util.digests import modules_digest, text_digest
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.artifact import Artifact
from flowevolve.core.event_kinds import RunStarted
from flowevolve.core.task import Example, Task


@runtime_checkable
class Digested(Protocol):
    """A task that is identified by more than its seed and its examples."""

    def digests(self) -> Mapping[str, str]:
        """Digests of its parts, by name."""


@runtime_checkable
class Adjustable(Protocol):
    """A task with settings that may differ when a run is resumed; the user is told which have changed."""

    def adjustable(self) -> Mapping[str, str]:
        """Digests of these settings, by name."""


def identity(task: Task, algorithm: type[Algorithm] | None = None) -> RunStarted:
    """Return what identifies a task: its name, the number of its validation examples, a digest of these that ignores
    their order, and digests of its seed, its training examples and its further parts. If the algorithm is not one of
    ours, a digest of its code is included.
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


def identity_of_test(task: Task, artifacts: Sequence[Artifact]) -> str | None:
    """A digest of the test examples, the artifacts that are run on them, and the parts that decide their scores; None
    if the task does not name a metric among its parts, or if examples hold values that are not plain data.
    """
    parts = task.digests() if isinstance(task, Digested) else {}
    if "metric" not in parts or not all(map(_is_plain, task.data.test)):
        return None
    of_parts = (f"{name} {parts[name]}" for name in sorted(parts))
    return text_digest([*(artifact.id for artifact in artifacts), *map(_line, task.data.test), *of_parts])


def difference(before: RunStarted, task: Task, *, named_by_folder: bool = False) -> str | None:
    """Say how the task that earlier scores belong to differs from this one; None if it is the same.

    ``before`` is the first event of the earlier run. Fields that it leaves out are not compared, nor is a name that is
    that of the task's folder, as long as the seed is the same: the folder may have got another name.
    """
    after = identity(task)
    same_seed = (before.digests or {}).get("prompt") == (after.digests or {}).get("prompt")
    names = ("examples", "digest") if named_by_folder and same_seed else ("task", "examples", "digest")
    if all(getattr(before, name) in (None, getattr(after, name)) for name in names):
        return None
    same_size = (before.task, before.examples) == (after.task, after.examples)
    hint = " (if these are the same rows in another order: it is the order that decides which are for validation)"
    return f"of {_words(before)}, not of {_words(after)}{hint if same_size else ''}"


def changed_parts(before: RunStarted, task: Task, algorithm: type[Algorithm] | None = None) -> list[str]:
    """The names of those digests of a task, and of an algorithm, that have changed since the run began. A digest that
    is missing on one side is not compared.

    Digests of code are compared only under the version of Python that the run began with.
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


def _is_plain(example: Example) -> bool:
    try:
        json.dumps(dict(example.data))
    except (TypeError, ValueError):
        return False
    return True


def _line(example: Example) -> str:
    # The rows of a task given as an object may hold values that are not plain data: their types stand in for them.
    return json.dumps([example.id, dict(example.data)], skipkeys=True, default=lambda value: type(value).__name__)
