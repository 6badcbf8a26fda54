"""Runs on the virtual clock that are killed, and gone on with from their directories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve.config.run import Config, parse_config
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers
from flowevolve.tasks.house_style import house_style_task
from tests.support.journals import edited

SETTINGS: Mapping[str, object] = {
    "clock": "virtual",
    "algorithm": {"max_in_flight": 6},
    "staleness": {"policy": "reflective"},
    "speculation": {"alpha": {"generate": 0.34, "evaluate": 0.3}},
    "budget": {"proposals": 8},
}


def config(**sections: object) -> Config:
    return parse_config({**SETTINGS, **sections}, "test")


def run(out: Path, **sections: object) -> Result:
    async def go() -> Result:
        return await fe.run(config(**sections), out=out, events=True)

    return clock.run(go, clock="virtual")


def resume(directory: Path, *changes: str, task: fe.Task | None = None) -> tuple[Result, list[fe.Event]]:
    events: list[fe.Event] = []

    async def go() -> Result:
        return await fe.resume(directory, changes=changes, task=task, watchers=Watchers(events=(events.append,)))

    return clock.run(go, clock="virtual"), events


def kill(directory: Path, share: float) -> None:
    """Leave a run as if it had been killed when so much of it had been done."""
    with edited(directory) as database:
        (last,) = database.execute("SELECT max(seq) FROM events").fetchone()
        database.execute("DELETE FROM events WHERE seq > ?", (int(last * share),))
        database.execute("DELETE FROM calls WHERE seq >= ?", (int(last * share),))
    (directory / "result.json").unlink()


def rules(number: int, *, seed: int = 1) -> fe.Task:
    """A house style of so many rules."""
    return house_style_task(make_rows(rules=number, per_example=2, overlap=0.3, rows=30, seed=seed))
