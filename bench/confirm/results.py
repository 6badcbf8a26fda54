"""The content of the result file, from what a folder of repeats has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench._lib.environment import environment
from bench.confirm.meter import Meter, Paid, Unit
from bench.confirm.rehearsal import REHEARSALS
from bench.confirm.repeats import METHODS, Repeat
from bench.confirm.settings import Settings
from flowevolve.core.task import Task


def content(
    settings: Settings,
    tasks: Mapping[str, Task],
    out: Path,
    meter: Meter,
    caps: Mapping[Unit, float],
    rehearsed_on: str | None,
) -> dict[str, object]:
    """The results so far. ``rehearsed_on`` names the `Rehearsal`, if it is one."""
    shown = settings.to_json()
    shown.pop("data")  # a path on somebody's machine
    return {
        "settings": {**shown, "base_url": None, "caps": dict(caps)},
        "rehearsed_on": rehearsed_on,
        "rehearsal": "" if rehearsed_on is None else REHEARSALS[rehearsed_on].about,
        "rows": {name: {"repeats": _repeats(name, task, out, meter)} for name, task in tasks.items()},
        "paid": _paid(meter, meter.paid()),
        **environment(),
    }


def _repeats(name: str, task: Task, out: Path, meter: Meter) -> list[dict[str, object]]:
    """Each repeat that was begun, in order; those that are not complete lack scores."""
    found, number = [], 0
    while (repeat := Repeat(out, name, number)).begun:
        courses = {method: repeat.course(method) for method in METHODS}
        found.append(
            {
                "scores": {of: list(scores) for of, scores in repeat.scores(task).items()},
                "validation": {method: each.steps[-1].score for method, each in courses.items() if each.ended},
                "seconds": {method: each.steps[-1].seconds for method, each in courses.items() if each.ended},
                "calls": {method: each.steps[-1].calls for method, each in courses.items() if each.ended},
                "sittings": {method: each.sittings for method, each in courses.items()},
                "paid": {part: _paid(meter, meter.paid(f"{repeat.work}/{part}")) for part in (*METHODS, "held_out")},
            }
        )
        number += 1
    return found


def _paid(meter: Meter, paid: Paid) -> dict[str, float]:
    return {
        "requests": paid.calls,
        "prompt_tokens": paid.usage.prompt_tokens,
        "completion_tokens": paid.usage.completion_tokens,
        "dollars": meter.amount("dollars", paid.usage),
    }
