"""A task that begins with other texts than its own."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
from flowevolve.core.task import Task


def with_seed(task: Task, texts: Mapping[str, str], setting: str) -> Task:
    """The same task with these texts, by component, as its seed. ``setting`` names where they stand, for messages.

    What a task can do beyond `flowevolve.core.task.Task` is found by its class, so the new one is of a subclass.

    Raises:
        InputError: if the task's own seed has other components.
    """
    own = task.seed()
    if texts.keys() != own.keys():
        raise InputError(
            f"{setting}: has {_names(texts)}, and what task {task.name!r} begins with has {_names(own)}; give each of "
            "these a text, and no others"
        )
    seed = Artifact(texts, own.kind)
    kind = type(task)
    members = {"__slots__": (), "__module__": kind.__module__, "seed": lambda self: seed}
    other = copy(task)
    object.__setattr__(other, "__class__", type(kind.__name__, (kind,), members))
    return other


def _names(texts: Mapping[str, str]) -> str:
    return " and ".join(map(repr, texts))
