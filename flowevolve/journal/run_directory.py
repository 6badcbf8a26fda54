"""The run directory: everything one run leaves on disk.

It holds ``config.toml`` (resolved), ``journal.sqlite``, ``events.jsonl`` on request, ``lock`` and, once the run has
ended, ``result.json``. A directory that already holds a run is never overwritten; the run can be resumed. A run that
failed or was killed before it began makes way for another.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Literal, TextIO

import tomli_w

from flowevolve._util.errors import InputError, StorageError, reason_of
from flowevolve._util.json_types import JSON
from flowevolve.core.calls import CallRecord
from flowevolve.core.event_kinds import RunResumed
from flowevolve.core.events import Event
from flowevolve.core.stop_reasons import FAILED, StopReason
from flowevolve.journal.end_mark import END_MARK
from flowevolve.journal.files import PART, how_to_mend, open_text, put_on_disk, write_whole, writing
from flowevolve.journal.journal import Journal, Sync
from flowevolve.journal.lock import Lock, is_held, patient_lock
from flowevolve.journal.opening import JOURNAL, JOURNAL_FILES, WAL, OpenedJournal, reading
from flowevolve.journal.reading import CONFIG, RecordedRun
from flowevolve.journal.tables import find_schema

State = Literal["running", "finished", "interrupted", "failed", "not begun"]
"""An ``interrupted`` run was stopped or killed. It can be resumed, and so can one that ``failed``."""

RESUMED_BY_SCRIPT = "start its script again with resume=True"
"""How to go on with a run that was given objects in Python, which the command ``flowevolve resume`` can't have."""
EVENTS, RESULT = "events.jsonl", "result.json"
_BEGUN = "SELECT 1 FROM events WHERE kind = 'run.start' LIMIT 1"


def claim(path: Path) -> Lock:
    """Lock a directory that holds a run. This blocks.

    Raises:
        InputError: if it holds no run, or another process is at work on it.
    """
    OpenedJournal(path).close()
    return patient_lock(path)


class RunDirectory:
    """The directory of a run, which no other process may use meanwhile. `close` it when the run has ended.

    ``given`` names what the run was given as objects. ``lock`` is the lock of the directory, if the caller already
    holds it.

    With ``resume`` the existing run is continued. ``config`` replaces its configuration as soon as it really goes on,
    ``events.jsonl`` is rewritten from the journal if it exists or is asked for, and the remains of an interrupted write
    are removed.

    Raises:
        InputError: if the directory already holds a run, with ``resume`` holds none, is in use, or can't be written.
    """

    def __init__(
        self,
        path: Path,
        config: Mapping[str, object],
        *,
        events: bool = False,
        sync: Sync = "normal",
        given: Sequence[JSON] = (),
        lock: Lock | None = None,
        resume: bool = False,
    ) -> None:
        if resume and not (path / JOURNAL).is_file():
            raise InputError(f"{path} holds no run to go on with, as there is no {JOURNAL} in it")
        if not resume:
            with writing(path):
                if path.exists() and not path.is_dir():
                    raise InputError(f"{path} is not a directory; name one for the run, such as runs/a")
                path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._events: TextIO | None = None
        self._folders = (path,) if sync == "full" else ()
        self._failure: OSError | None = None
        self._held_up: StorageError | None = None
        with ExitStack() as stack, writing(path):
            self._lock = lock or Lock(path)
            stack.callback(self._lock.release)
            if not resume:
                _make_way(path)
            self._config = _without_none(config)
            told = json.dumps(self._config)
            self.journal = Journal(path / JOURNAL, resume=resume, sync=sync, given=given, config=told)
            stack.callback(self.journal.close)
            (path / (RESULT + PART)).unlink(missing_ok=True)
            if not (path / CONFIG).exists():
                write_whole(path / CONFIG, [tomli_w.dumps(self._config)])
            if events or (path / EVENTS).exists():
                write_whole(path / EVENTS, _recorded_events(path) if resume else ())
                self._events = open_text(path / EVENTS, "a")
            if sync == "full":
                put_on_disk(path, path.absolute().parent)
            stack.pop_all()

    def event(self, event: Event) -> None:
        """Write an event to the journal, and to ``events.jsonl`` if asked for. This is an event sink."""
        self.journal.event(event)
        if isinstance(event.body, RunResumed):
            self._go_on()
        if self._events is not None and self._failure is None:
            try:
                self._events.write(event.to_json() + "\n")
            except OSError as error:  # raised by `close`, because event sinks don't raise
                self._failure = error

    def _go_on(self) -> None:
        """Remove the result and replace the configuration, now that the run does go on."""
        self.journal.configure(json.dumps(self._config))
        try:
            (self.path / RESULT).unlink(missing_ok=True)
            self._write(CONFIG, tomli_w.dumps(self._config))
        except OSError as error:  # raised by `settled`, because event sinks don't raise
            self._held_up = _not_written(self.path / CONFIG, error)

    def _write(self, name: str, text: str) -> None:
        write_whole(self.path / name, [text])
        put_on_disk(*self._folders)

    def call(self, record: CallRecord) -> None:
        """An `flowevolve.llm.client.client.LLMClient` observer."""
        self.journal.call(record)

    def begin(self, origin: float) -> None:
        """As `flowevolve.journal.journal.Journal.begin`."""
        self.journal.begin(origin)

    async def settled(self) -> None:
        """Return when everything so far is in the journal.

        Raises:
            StorageError: if something could not be written.
        """
        await self.journal.settled()
        if self._held_up is not None:
            raise self._held_up

    def write_result(self, result: Mapping[str, object]) -> None:
        """Write ``result.json`` whole or not at all, once everything that it refers to is in the journal.

        Raises:
            StorageError: if the journal or the result can't be written.
        """
        self.journal.flush()
        try:
            self._write(RESULT, json.dumps(result, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise _not_written(self.path / RESULT, error) from error

    def close(self) -> None:
        """Write what is left.

        Raises:
            StorageError: if something could not be written.
        """
        with ExitStack() as stack:
            stack.callback(self._lock.release)
            stack.callback(self.journal.close)
            self._close_events()

    def _close_events(self) -> None:
        if self._events is None:
            return
        try:
            self._events.close()
        except OSError as error:
            self._failure = error
        if self._failure is not None:
            raise StorageError(
                f"{self.path / EVENTS} could not be written: {reason_of(self._failure)}. "
                f"{how_to_mend(self._failure).capitalize()}, and resume the run; then this file is written anew from "
                "the journal"
            ) from self._failure


def has_begun(path: Path) -> bool:
    """Whether the run in a directory has begun. One that failed or was killed before that has paid for nothing.

    Raises:
        DamagedError: if its beginning can't be trusted.
        InputError: if there is no journal, or it can't be read.
    """
    with closing(OpenedJournal(path)) as journal, reading(path):
        schema = find_schema(journal.database)
        begun = schema is not None and bool(journal.rows(_BEGUN))
    if schema is not None and not begun:
        with RecordedRun(path) as recorded:
            recorded.check()
    return begun or (path / RESULT).exists()


def find_state(path: Path, ended_by: StopReason | None) -> State:
    """The state of the run in a directory. ``ended_by`` is why it ended, if its result is there."""
    if is_held(path):
        return "running"
    if ended_by is None:
        return "interrupted" if has_begun(path) else "not begun"
    if ended_by == FAILED:
        return "failed"
    return "interrupted" if ended_by.leaves_work else "finished"


def _make_way(path: Path) -> None:
    """Remove the files of a run that never began."""
    journal = any((path / name).is_file() for name in (JOURNAL, WAL, END_MARK))
    taken = has_begun(path) if journal else any((path / name).exists() for name in (CONFIG, RESULT))
    if taken:
        command = f"call flowevolve resume {path}, or in Python give resume=True"
        raise InputError(
            f"{path} holds a run already. To go on with it, {RESUMED_BY_SCRIPT if _given(path) else command}; for a "
            "new run, give another directory as out"
        )
    for name in (CONFIG, *reversed(JOURNAL_FILES)):
        (path / name).unlink(missing_ok=True)


def _given(path: Path) -> Collection[str]:
    """The names of what a run was given as objects, as far as its journal can be read."""
    try:
        with RecordedRun(path) as recorded:
            return recorded.given or ()
    except InputError:
        return ()


def read_result(path: Path) -> dict[str, object]:
    """The content of a run directory's ``result.json``.

    Raises:
        InputError: if there is none, or it can't be read as one.
    """
    file = path / RESULT
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} can't be read: {reason_of(error)}") from error
    except ValueError as error:
        raise InputError(
            f"{file} is damaged: {reason_of(error)}. If you delete it, flowevolve resume {path} writes it anew from "
            "the journal"
        ) from error
    if not isinstance(result, dict) or result.get("schema") != 1:
        raise InputError(f"{file} is not a result that this version of flowevolve can read")
    return result


def _not_written(path: Path, error: OSError) -> StorageError:
    reason = reason_of(error)
    return StorageError(f"{path} can't be written: {reason}. {how_to_mend(error).capitalize()}, and resume the run")


def _without_none(table: Mapping[str, object]) -> dict[str, object]:
    """Remove the entries that are not set, because TOML has no null."""
    return {key: _plain(value) for key, value in table.items() if value is not None}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return _without_none(value)
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _recorded_events(path: Path) -> Iterator[str]:
    with RecordedRun(path) as recorded:
        for event in recorded.events():
            yield event.to_json() + "\n"
