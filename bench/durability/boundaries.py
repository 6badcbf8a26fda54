"""Cuts the journal of a short run on the virtual clock at every boundary between two facts, and resumes the run.

With an unchanged configuration the run is repeated and has to end as the uncut one did: with the same events, calls and
pool. With a changed setting it is rebuilt from the journal instead, and its journal has to add up at the end.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench._lib.house_style import make_rows
from bench.durability.audit import faults_at_the_end
from bench.durability.runs import SETTINGS
from flowevolve._util import clock
from flowevolve._util.errors import FlowevolveError
from flowevolve.config.run import Config, parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.pool import Pool
from flowevolve.core.task import Task
from flowevolve.engine.engine import Engine
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.runner.result import Result
from flowevolve.runner.resume import resume
from flowevolve.runner.run import Watchers, run
from flowevolve.tasks.house_style import house_style_task

Fact = Event | CallRecord
HARMLESS = ("drain_seconds=31",)
"""A change that makes no difference to a run that nobody stops, but makes `flowevolve.resume` rebuild it."""


@dataclass
class Boundaries:
    """The results of all boundaries: how many runs did not end as the uncut one did, and how many rebuilt runs had
    faults.
    """

    events: int = 0
    calls: int = 0
    boundaries: int = 0
    mismatches: int = 0
    rebuilt: int = 0
    rebuilt_faults: int = 0
    messages: list[str] = field(default_factory=list)


def short_task() -> Task:
    return house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))


def try_all(folder: Path, proposals: int, every: int = 1) -> Boundaries:
    """Cut a run with this many proposals at every ``every``-th of its boundaries, and resume it."""
    task = short_task()
    config = parse_config(
        {"clock": "virtual", **SETTINGS, "budget": {"proposals": proposals}, "seed": 3}, "bench.durability.boundaries"
    )
    facts, origin, pool = _record(config, task)
    found = Boundaries(
        events=sum(isinstance(fact, Event) for fact in facts),
        calls=sum(isinstance(fact, CallRecord) for fact in facts),
    )
    ends = [end for end in range(1, len(facts), every) if any(isinstance(fact, Event) for fact in facts[:end])]
    for end in ends:
        found.boundaries += 1
        fault = _done_again(folder / f"again-{end}", config, task, facts, end, origin, pool)
        found.mismatches += fault is not None
        found.rebuilt += 1
        faults = _rebuilt(folder / f"rebuilt-{end}", config, task, facts, end, origin)
        found.rebuilt_faults += bool(faults)
        messages = [f"boundary {end}: {each}" for each in ([fault] if fault else []) + faults]
        found.messages.extend(messages)
        for each in messages:
            print(each, flush=True)
    return found


def _record(config: Config, task: Task) -> tuple[list[Fact], float, object]:
    """Make the uncut run. Returns all facts it wrote, the loop's time at its start, and a description of its pool."""
    facts: list[Fact] = []
    origins: list[float] = []

    async def note(engine: Engine) -> None:
        origins.append(engine.origin)

    async def main() -> Result:
        return await run(config, task=task, watchers=Watchers((facts.append,), (facts.append,)), side_task=note)

    result = clock.run(main, clock="virtual")
    return facts, origins[0], _describe(result.report.pool)


def _cut(path: Path, config: Config, facts: Sequence[Fact], origin: float) -> None:
    """Make the run directory that a kill after these facts would leave."""
    directory = RunDirectory(path, config.model_dump(mode="json"))
    directory.begin(origin)
    for fact in facts:
        if isinstance(fact, Event):
            directory.event(fact)
        else:
            directory.call(fact)
    directory.close()


def _resume(path: Path, task: Task, changes: Sequence[str]) -> Result:
    async def main() -> Result:
        return await resume(path, changes=changes, task=task)

    return clock.run(main, clock="virtual")


def _done_again(
    path: Path, config: Config, task: Task, facts: Sequence[Fact], end: int, origin: float, pool: object
) -> str | None:
    """Repeat the run after its first ``end`` facts. Returns what differs from the uncut run, or None."""
    _cut(path, config, facts[:end], origin)
    try:
        result = _resume(path, task, ())
    except FlowevolveError as error:
        return f"done again, it ended with {error}"
    with RecordedRun(path) as recorded:
        events = [event.to_json() for event in recorded.events()]
        replies = [(call.stage, call.item, call.index, call.reply) for call in recorded.calls()]
    shutil.rmtree(path)
    if events != [fact.to_json() for fact in facts if isinstance(fact, Event)]:
        return "done again, the events are others"
    if replies != [_reply(fact) for fact in facts if isinstance(fact, CallRecord)]:
        return "done again, the calls are others"
    return None if _describe(result.report.pool) == pool else "done again, the pool is another"


def _rebuilt(path: Path, config: Config, task: Task, facts: Sequence[Fact], end: int, origin: float) -> list[str]:
    _cut(path, config, facts[:end], origin)
    try:
        _resume(path, task, HARMLESS)
    except FlowevolveError as error:
        return [f"rebuilt, it ended with {error}"]
    faults = [f"rebuilt: {fault}" for fault in faults_at_the_end(path)]
    with RecordedRun(path) as recorded:
        kept = [event.to_json() for event in recorded.events()]
    before = [fact.to_json() for fact in facts[:end] if isinstance(fact, Event)]
    shutil.rmtree(path)
    return faults if kept[: len(before)] == before else [*faults, "rebuilt: the journal's events have changed"]


def _reply(call: CallRecord) -> tuple[str, str, int, str | None]:
    return call.scope.stage, call.scope.item, call.scope.index, None if call.reply is None else call.reply.text


def _describe(pool: Pool) -> object:
    """All contents of a pool in a form that can be compared. Times are rounded as in the log."""
    return (
        [(each.version, each.changes, each.cause, round(each.time, 6)) for each in pool.updates_between(0)],
        [(name, candidate, pool.status(candidate.id)) for name, candidate in pool.candidates()],
    )
