"""Checks of what a user gives as a task, before anything is paid for."""

from __future__ import annotations

import inspect

from flowevolve._util.errors import FlowevolveError, InputError, described
from flowevolve.core.artifact import Artifact
from flowevolve.core.task import Task


def check_task(task: object, where: str) -> None:
    """Check that something is a task. ``where`` names the function that it was given to, for messages.

    Raises:
        InputError: if it is a class, or lacks a part of a task.
    """
    if isinstance(task, type):
        raise InputError(f"{where}: task is the class {task.__name__}; give an instance: {task.__name__}()")
    for name in ("name", "data", "seed", "rollout"):
        if not hasattr(task, name):
            raise InputError(
                f"{where}: task is {_a(task)} and has no {name!r}; give a flowevolve.Task, the name of "
                "one, or prompt=, train= and metric="
            )


def check_parts(task: Task) -> None:
    """Raises: InputError if the task's name, data, rollout or seed is not what `flowevolve.core.task.Task` says."""
    place = f"task {task.name!r}"
    name: object = task.name
    data: object = task.data
    seed = _seed_of(task, place)
    if not isinstance(name, str):
        raise InputError(f"{place}: its name is of type {type(name).__name__}; names are texts")
    for split in ("train", "val", "test"):
        if not hasattr(data, split):
            raise InputError(f"{place}: its data is {_a(data)}; give a Dataset(train=…, val=…)")
    for split in ("train", "val"):
        if not getattr(data, split):
            raise InputError(f"{place} has no {split} examples; give at least one")
    rollout = task.rollout
    if inspect.isroutine(rollout) and not inspect.iscoroutinefunction(inspect.unwrap(rollout)):
        raise InputError(
            f"{place}: rollout() is not async; write it as: async def rollout(self, artifact, example, llm)"
        )
    if inspect.iscoroutine(seed):
        seed.close()
        raise InputError(f"{place}: seed() is async; write it as: def seed(self)")
    if not isinstance(seed, Artifact):
        raise InputError(
            f"{place}: seed() returned {_a(seed)}, but has to return an Artifact; write it as: "
            'return Artifact({"prompt": "…"})'
        )


def _seed_of(task: Task, place: str) -> object:
    try:
        return task.seed()
    except FlowevolveError:
        raise
    except Exception as error:
        raise InputError(f"{place}: seed() failed: {described(error)}") from error


def _a(value: object) -> str:
    """What a value is, with its article."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
