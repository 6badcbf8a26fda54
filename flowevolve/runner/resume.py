"""Going on with a run that was killed or stopped.

A run is rebuilt from its journal and goes on from there (`flowevolve.engine.recovery.recovery`). A run on the virtual
clock that was killed is repeated from the beginning instead: its simulated server is gone, and repeating everything
brings it back to exactly where it was. On the way, every event and reply is compared with the journal. Nothing is paid
for twice in either case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from flowevolve._util.clock import in_thread, in_thread_unless_virtual
from flowevolve._util.errors import FROM_ITS_POOL, InputError
from flowevolve._util.logger import logging_notes
from flowevolve.config.run import Config, parse_recorded, with_overrides
from flowevolve.core.calls import CallRecord
from flowevolve.core.event_kinds import (
    FlowOpened,
    RunPaused,
    RunResumed,
    RunStarted,
    RunSteered,
    RunStopped,
    RunStopping,
)
from flowevolve.core.events import Event
from flowevolve.core.item import INJECTION
from flowevolve.core.policies import StalenessPolicy
from flowevolve.core.stop_reasons import StopReason
from flowevolve.core.task import Task
from flowevolve.journal.history import RunHistory
from flowevolve.journal.lock import Lock
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.reading import CONFIG, RecordedRun
from flowevolve.journal.run_directory import RESULT, RunDirectory, claim, has_begun
from flowevolve.runner.clients import SideTask
from flowevolve.runner.ended_runs import NamesSetting, advice, check_room, on_command_line
from flowevolve.runner.held_out import earlier_test
from flowevolve.runner.plan import Plan, ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.resume_checks import check_compatible, check_given, check_parts, check_task
from flowevolve.runner.run import Watchers, run_plan
from flowevolve.runner.trust import earlier_trust


async def resume(
    directory: Path | str,
    *,
    config: Config | None = None,
    changes: Sequence[str] = (),
    task: Task | None = None,
    staleness: StalenessPolicy | None = None,
    watchers: Watchers | None = None,
    side_task: SideTask | None = None,
    again: bool = False,
    note: Callable[[str], None] | None = None,
    names: NamesSetting = on_command_line,
    plan: Callable[[Config, ProvidedObjects], Plan] = make_plan,
) -> Result:
    """Go on with the run in a directory until its budget is spent; a run that has not begun is started.

    ``config`` replaces the run's own configuration; ``changes`` are ``key=value`` overrides of it. What was given as an
    object when the run began has to be given again. With ``again``, a run that has ended is not refused, but ends once
    more with the same result. ``note`` is called with a line on each permitted change of the task; by default it is
    logged. ``names`` says how the caller gives a setting that has to change. ``plan`` makes the plan to run from the
    configuration.

    Raises:
        InputError: if there is no such run, another process is at work on it, it has ended, or it can't go on with the
            configuration.
        BackendUnreachableError, BackendRefusedError, TaskFailedError: as `flowevolve.run`.
    """
    directory = Path(directory)
    lock = await in_thread_unless_virtual(claim, directory)
    request = _ResumeRequest(
        directory,
        lock,
        config,
        changes,
        ProvidedObjects(task, staleness),
        watchers or Watchers(),
        side_task,
        note or logging_notes("resume.note"),
        names,
        plan,
    )
    try:
        return await (_go_on(request, again) if has_begun(directory) else _begin(request))
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class _ResumeRequest:
    """What `resume` was asked to do, and the lock that it holds meanwhile."""

    directory: Path
    lock: Lock
    config: Config | None
    changes: Sequence[str]
    given: ProvidedObjects
    watchers: Watchers
    side_task: SideTask | None
    note: Callable[[str], None]
    names: NamesSetting
    plan: Callable[[Config, ProvidedObjects], Plan]


async def _begin(request: _ResumeRequest) -> Result:
    """Start a run that has only created its files: it may have other settings than those it was created with."""
    directory, config, given = request.directory, request.config, request.given
    if config is None:
        with RecordedRun(directory) as recorded:
            config = parse_recorded(recorded.edited_config, f"{directory}/config.toml")
            check_given(directory, frozenset(json.loads(recorded.meta("given") or "[]")), given)
    wanted = with_overrides(config, request.changes)
    table, names = wanted.model_dump(mode="json"), given.names()
    keep = partial(RunDirectory, directory, table, sync=wanted.journal.sync, given=names, lock=request.lock)
    return await run_plan(request.plan(wanted, given), keep, request.watchers, request.side_task)


async def _go_on(request: _ResumeRequest, again: bool) -> Result:
    directory = request.directory
    with RecordedRun(directory) as recorded:
        before = await in_thread_unless_virtual(_read_earlier_run, recorded)
        config = request.config or parse_recorded(
            recorded.edited_config, f"{directory}/{CONFIG}"
        )  # may have been edited
        wanted = with_overrides(config, request.changes)
        check_compatible(directory, before.config, wanted)
        check_given(directory, before.start.given or (), request.given)
        changed = wanted != before.config
        if before.ended is not None and not before.ended.leaves_work and not again:
            if not changed:
                raise InputError(
                    f"{directory}: the run has ended, stopped by "
                    f"{before.ended.said}{advice(before.ended, wanted.budget, request.names)}"
                )
            if wanted.budget != before.config.budget:
                await in_thread_unless_virtual(partial(check_room, wanted.budget), directory, request.names)
        alike = _measuring_alike(wanted, before.start)
        made = request.plan(alike, request.given)
        planned = replace(made, trust=earlier_trust(before.start), held_out=earlier_test(directory))
        check_task(directory, before.start, planned)
        new_functions = check_parts(directory, before.start, planned, request.note)
        table = wanted.model_dump(mode="json")
        keep = partial(RunDirectory, directory, table, sync=wanted.journal.sync, lock=request.lock, resume=True)
        with closing(await in_thread_unless_virtual(keep)) as keeping:
            # A response cache has new entries since then, so that a repeated run would get answers at other times.
            exact = wanted.clock == "virtual" and wanted.llm.cache.path is None
            exact = exact and not changed and not new_functions
            if exact and before.ended is None and not before.was_touched:
                return await run_plan(planned, lambda: _Rerun(keeping, recorded), request.watchers, request.side_task)
            history = await in_thread(RunHistory, recorded)
            result = await run_plan(planned, lambda: keeping, request.watchers, request.side_task, history)
    if result.reached_before:
        how = advice(result.stop_reason, wanted.budget, request.names)
        ended = f"what ends the run had been reached before ({result.stop_reason.said})"
        request.note(f"{directory}: nothing new was begun, as {ended}{how}")
    return result


def _measuring_alike(config: Config, start: RunStarted) -> Config:
    """The configuration with the class of machines that the run began to measure on, unless it names one itself."""
    if start.measured_on is None or config.sandbox.measure_on:
        return config
    sandbox = config.sandbox.model_copy(update={"measure_on": start.measured_on})
    return config.model_copy(update={"sandbox": sandbox})


def is_run(directory: Path) -> bool:
    """Whether there is a run in a directory that can be resumed.

    Raises:
        InputError: if its journal can't be read.
    """
    return (directory / JOURNAL).is_file() and has_begun(directory)


@dataclass(frozen=True, slots=True)
class _EarlierRun:
    """A run as it was left."""

    config: Config
    """The configuration with which it began or last went on."""
    start: RunStarted
    """What its first event says."""
    ended: StopReason | None
    """Why it stopped; None if it was killed, even if that was just before it wrote its result."""
    was_touched: bool
    """Whether a user stopped, paused, resumed or steered it, or injected candidates, all of which a repetition would
    need again.
    """


def _read_earlier_run(recorded: RecordedRun) -> _EarlierRun:
    """Check that the journal is whole, and read how the run was left. This takes seconds for a large one."""
    recorded.check()
    directory, start, last = recorded.path, recorded.start, recorded.last_event()
    if start is None or last is None:
        raise InputError(
            f"{directory}: the journal does not have the beginning of the run; start a new run in another directory"
        )
    end = recorded.event(last[0]).body
    touched = (
        any(StopReason(stop.reason).leaves_work for stop in recorded.events_of(RunStopping))
        or any(flow.trigger == INJECTION for flow in recorded.events_of(FlowOpened))
        or any(True for kind in (RunResumed, RunPaused, RunSteered) for _ in recorded.events_of(kind))
    )
    return _EarlierRun(
        parse_recorded(recorded.config, f"{directory}/{CONFIG}"),
        start,
        StopReason(end.reason) if isinstance(end, RunStopped) and (directory / RESULT).exists() else None,
        touched,
    )


def _is_same_start(event: Event, before: Event) -> bool:
    """Whether both events start the same run; digests don't count, as older versions did not write them all."""
    new, old = event.body, before.body
    return isinstance(new, RunStarted) and isinstance(old, RunStarted) and replace(new, digests=old.digests) == old


class _Rerun:
    """A run directory whose run is being repeated: nothing is written until the run is where it was.

    If it is stopped before that, or takes another course, the directory stays as it was.
    """

    def __init__(self, directory: RunDirectory, recorded: RecordedRun) -> None:
        self._directory = directory
        self._events = recorded.events()
        self._calls = recorded.calls()
        self._given_up = False

    @property
    def path(self) -> Path:
        return self._directory.path

    def event(self, event: Event) -> None:
        before = None if self._given_up else next(self._events, None)
        if before is None:
            if not self._given_up:
                self._directory.event(event)
        elif event.to_json() != before.to_json() and not _is_same_start(event, before):
            self._given_up = True
            if not (isinstance(event.body, RunStopping) and StopReason(event.body.reason).leaves_work):
                raise self._another_way(f"at event {event.seq}: {event.kind}, where the journal has {before.kind}")

    def call(self, record: CallRecord) -> None:
        scope, text = record.scope, None if record.reply is None else record.reply.text
        before = None if self._given_up else next(self._calls, None)
        if before is None:
            if not self._given_up:
                self._directory.call(record)
        elif (before.stage, before.item, before.reply) != (scope.stage, scope.item, text):
            self._given_up = True
            raise self._another_way(f"with a call of stage {scope.stage!r} for item {scope.item}")

    def _another_way(self, where: str) -> InputError:
        return InputError(
            f"{self._directory.path}: when it was repeated up to where it was, the run took another course {where}. "
            f"The code or the packages must have changed since. To go on, {FROM_ITS_POOL}"
        )

    def begin(self, origin: float) -> None:
        self._directory.begin(origin)

    async def settled(self) -> None:
        await self._directory.settled()

    def write_result(self, result: Mapping[str, object]) -> None:
        if not self._given_up:
            self._directory.write_result(result)

    def close(self) -> None:
        self._directory.close()
