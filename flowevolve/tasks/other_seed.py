"""Copies of a task in which something is replaced, such as its seed."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from flowevolve._util.errors import InputError
from flowevolve.core.artifact import Artifact
from flowevolve.core.task import Task


def with_seed(task: Task, texts: Mapping[str, str], setting: str) -> Task:
    """The same task with these texts, by component, as its seed. ``setting`` says in messages where they are from.

    Raises:
        InputError: if the task's own seed has other components.
    """
    own = task.seed()
    if texts.keys() != own.keys():
        raise InputError(
            f"{setting} has texts for {_names(texts)}, but task {task.name!r} begins with {_names(own)}; give each of "
            "these a text, and no others"
        )
    seed = Artifact(texts, own.kind)
    return with_members(task, {"seed": lambda self: seed})


def with_members(task: Task, members: Mapping[str, object]) -> Task:
    """A copy of a task in which these members of its class are replaced.

    The class determines what a task can do beyond `flowevolve.core.task.Task`, so the copy is of a subclass.
    """
    kind, other = type(task), copy(task)
    own = {"__slots__": (), "__module__": kind.__module__, **members}
    object.__setattr__(other, "__class__", type(kind.__name__, (kind,), own))
    return other


def _names(texts: Mapping[str, str]) -> str:
    return " and ".join(map(repr, texts))
