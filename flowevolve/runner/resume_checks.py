"""What may change between the beginning of a run and its resumption, so that scores keep their meaning."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from flowevolve._util.errors import FROM_ITS_POOL, InputError
from flowevolve.config.run import Config
from flowevolve.config.table import is_among
from flowevolve.core.event_kinds import RunStarted
from flowevolve.runner.plan import Plan, ProvidedObjects, is_named_by_folder
from flowevolve.tasks.identity import Adjustable, changed_parts, difference

PLACES = (
    "prompts.dir",
    "task.data.path",
    "task.data.test",
    "task.data.train",
    "task.data.val",
    "task.folder",
)
"""Settings that say where files are, which may have moved. The rows themselves are compared by `check_task`."""
MAY_CHANGE = (
    *PLACES,
    "algorithm.max_in_flight",
    "algorithm.aim",
    "algorithm.width",
    "allocation",
    "budget",
    "drain_seconds",
    "held_out",
    "journal",
    "llm",
    "racing",
    "sandbox.address",
    "sandbox.measure_on",
    "sandbox.on",
    "sandbox.slurm",
    "scheduler",
    "sim.faults",
    "sim.profile",
    "speculation",
    "staleness",
    "stages",
    "stopping",
    "vllm",
    "watch",
)
"""Settings and sections that may differ when a run goes on; the others may not, so that scores keep their meaning."""
MODELS = ("model", "models")
"""Keys within ``llm`` that may not change, although others there may."""
_SHOWN = 5
"""The most changed settings that an error names."""
FUNCTIONS = ("metric", "program", "algorithm")
"""The user's code that may change when a run goes on, for example to fix an error in it."""


def check_given(directory: Path, before: Collection[str], given: ProvidedObjects) -> None:
    """Raises: InputError if an object that was given in Python as the run began is missing now."""
    missing = sorted(set(before).difference(given.names()))
    if missing:
        raise InputError(
            f"{directory}: this run's {' and '.join(missing)} {'was' if len(missing) == 1 else 'were'} given in "
            "Python, so go on with it from there: start its script again (with resume=True, if it calls "
            f"flowevolve.optimize), or call flowevolve.resume({str(directory)!r}, "
            f"{', '.join(f'{name}=…' for name in missing)})"
        )


def check_task(directory: Path, start: RunStarted, plan: Plan) -> None:
    """Check what `check_compatible` can't see: a task given as an object, and data files that have changed."""
    wrong = difference(start, plan.task, named_by_folder=is_named_by_folder(plan.config))
    if wrong is not None:
        raise InputError(
            f"{directory}: the run's scores are {wrong}; go on with the task and data that it began with, or start a "
            "new run"
        )
    if plan.given.task is not None and start.given is not None and "task" not in start.given:
        raise InputError(
            f"{directory}: this run's task was named in its configuration; leave out the task that you give as an "
            "object, or start a new run with it in another directory"
        )


def check_parts(directory: Path, start: RunStarted, plan: Plan, note: Callable[[str], None]) -> list[str]:
    """The names of the code and settings that may change and have changed; ``note`` gets a line on each.

    Raises:
        InputError: if anything else has changed, as a run goes on with what it began with.
    """
    changed = changed_parts(start, plan.task, type(plan.algorithm))
    settings = plan.task.adjustable() if isinstance(plan.task, Adjustable) else {}
    seed = "the program that evolution starts from" if plan.task.seed().kind == "program" else "prompt"
    if other := [seed if name == "prompt" else name for name in changed if name not in (*FUNCTIONS, *settings)]:
        raise InputError(
            f"{directory}: {' and '.join(other)} {'has' if len(other) == 1 else 'have'} changed since the run "
            "began, and a run goes on with what it began with; give that, or start a new run in another directory"
        )
    for name in changed:
        note(
            f"{directory}: {name if name in settings else f'the code of {name}'} has changed since the run "
            "began; from now on the new one is used, and earlier scores are kept as they are"
        )
    return changed


def check_compatible(directory: Path, before: Config, wanted: Config) -> None:
    """Raises: InputError if a setting has changed that may not change."""
    old, new = _flat(before.model_dump(mode="json")), _flat(wanted.model_dump(mode="json"))
    changed = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key) and not _may_change(key)]
    if "algorithm.name" in changed:  # most of the other settings in this section differ for that reason alone
        changed = [key for key in changed if key == "algorithm.name" or not key.startswith("algorithm.")]
    if changed:
        wrong = [
            f"{key} is now {_in_words(new.get(key))}, but was {_in_words(old.get(key))}" for key in changed[:_SHOWN]
        ]
        more = f"; and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        raise InputError(
            f"{directory}: the run can't go on with settings that have changed: {'; '.join(wrong)}{more}. Leave them "
            f"as they were, or {FROM_ITS_POOL}"
        )


def _in_words(value: object) -> str:
    return "not given" if value is None else json.dumps(value)


def _may_change(key: str) -> bool:
    names = key.split(".")
    if names[0] == "llm" and any(name in MODELS for name in names[1:]):
        return False
    return is_among(key, MAY_CHANGE)


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}."))
        elif value is not None:
            flat[prefix + key] = value
    return flat
