"""Whole runs of a configuration on the virtual clock, with their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.json_types import JSON
from flowevolve.config.run import Config, parse_config
from flowevolve.core.pool import Note
from flowevolve.core.task import Task
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run, run_plan
from tests.support.interruption import Fact, Memory, as_kept


def evolve(settings: Config, out: Path | None = None) -> tuple[Result, list[fe.Event]]:
    """Make a run; returns its result and its events."""
    events: list[fe.Event] = []

    async def go() -> Result:
        return await run(settings, out=out, watchers=Watchers(events=(events.append,)))

    return clock.run(go, clock="virtual"), events


def go_on(table: Mapping[str, object], task: Task, before: Sequence[Fact] = ()) -> tuple[Result, list[Fact]]:
    """Make a run of a configuration, or go on with one after the facts ``before``; returns its result and all facts."""
    facts = list(before)
    config = parse_config({"clock": "virtual", **table}, "test")

    async def go() -> Result:
        watchers = Watchers(events=(lambda event: facts.append(as_kept(event)),), calls=(facts.append,))
        plan = make_plan(config, ProvidedObjects(task))
        return await run_plan(plan, None, watchers, None, Memory(tuple(before)) if before else None)

    return clock.run(go, clock="virtual"), facts


def notes(result: Result, kind: str) -> list[Mapping[str, JSON]]:
    """The notes of a kind that a run has committed."""
    updates = result.report.pool.updates_between(0)
    return [each.data for update in updates for each in update.changes if isinstance(each, Note) and each.kind == kind]
