"""Writes a new journal with what can be trusted of a damaged one."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flowevolve.core.event_kinds import FlowClosed, RunStarted
from flowevolve.core.item_ids import flow_of
from flowevolve.journal.checksums import checksum, seed_of
from flowevolve.journal.end_mark import EndMark
from flowevolve.journal.examination import CALLS, EVENTS, Findings, examine, rows_between
from flowevolve.journal.opening import JOURNAL, JOURNAL_FILES, open_for_recovery
from flowevolve.journal.tables import (
    INSERT_CALL,
    INSERT_CONFIG,
    INSERT_EVENT,
    INSERT_PAYLOAD,
    NO_ROWS_UNCHECKED,
    SCHEMA_VERSION,
    make_tables,
    new_run,
)
from flowevolve.journal.texts import unpack
from flowevolve.journal.views import VIEWS

_SCHEMA_OF_COLUMN = {"checksum": 6, "template": 5, "thinking": 4, "messages": 3}
"""Columns of the table ``calls``, each with the first schema that had it."""
_MESSAGES, _PAYLOAD, _CHECKSUM = 8, 5, -1
"""Places of columns in the rows of calls and events."""
_TEXT = "SELECT id, hash, data FROM texts WHERE id = ?"
_KEPT_PAYLOAD = "SELECT item, flow, data FROM payloads WHERE item = ?"


@dataclass(frozen=True, slots=True)
class Source:
    """A damaged journal in which the views of its schema were created, and what can be trusted of it.

    Read it only through this connection: SQLite folds the logs into the file when the connection is closed.
    """

    database: sqlite3.Connection
    schema: int
    findings: Findings


@dataclass(frozen=True, slots=True)
class Salvaged:
    """A new journal: its end mark, the time of its last event in seconds since the run began, whether that run has
    begun, and how many calls lost their messages.
    """

    mark: EndMark
    seconds: float
    begun: bool
    without_messages: int


@contextmanager
def opened_sources(folder: Path, scratch: Path, mark: EndMark | None) -> Iterator[list[Source]]:
    """A damaged journal as SQLite understands it with its logs, and as it understands it without them; the one that is
    sound for longer comes first. The files in ``folder`` are only read: SQLite opens copies of them in ``scratch``.
    """
    with ExitStack() as stack:
        sources = list[Source]()
        for name, files in (("with-logs", JOURNAL_FILES), ("without", (JOURNAL,))):
            copy = scratch / name
            copy.mkdir()
            for file in files:
                if (folder / file).is_file():
                    shutil.copy(folder / file, copy)
            with suppress(sqlite3.Error):
                database = stack.enter_context(closing(open_for_recovery(copy / JOURNAL)))
                sources.extend(_examined(database, mark))
        yield sorted(sources, key=lambda each: (each.findings.last_event, each.findings.last_call), reverse=True)


def _examined(database: sqlite3.Connection, mark: EndMark | None) -> Iterator[Source]:
    """Yield the journal with its findings if it is of the run of its mark, and if runs of its schema can be resumed."""
    columns = {row[1] for row in database.execute("PRAGMA table_info(calls)")}
    schema = next((found for column, found in _SCHEMA_OF_COLUMN.items() if column in columns), None)
    if schema is None:
        return
    database.executescript(VIEWS[schema])
    run = None if mark is None else mark.run
    found = examine(database, schema, run, fields=True)
    if found.usable_before is not None:
        found = replace(examine(database, schema, run, found.usable_before, fields=True), ends=found.ends)
    if mark is None or found.run == mark.run:
        yield Source(database, schema, found)


def write_sound(source: Source, file: Path) -> Salvaged:
    """Write what can be trusted of a journal into a new one."""
    with closing(sqlite3.connect(file)) as new:
        return _Copying(source, new).copy()


class _Copying:
    def __init__(self, source: Source, new: sqlite3.Connection) -> None:
        self._found = source.findings
        self._older = source.schema < SCHEMA_VERSION
        self._old = source.database
        self._new = new
        self._run = self._found.run or new_run()
        self._seed = seed_of(self._run)
        self._given: str | None = None
        self._closed = set[int]()
        self._seconds = 0.0
        self._texts = set[int]()
        self._without_messages = 0

    def copy(self) -> Salvaged:
        ends = self._found.last_event, self._found.last_call
        make_tables(self._new, self._run, "[]", ends if self._older else self._found.unchecked)
        with self._new:
            self._new.executemany(INSERT_EVENT, self._events())
            self._new.executemany(INSERT_CALL, self._calls())
            texts = (self._old.execute(_TEXT, (number,)).fetchone() for number in sorted(self._texts))
            self._new.executemany("INSERT INTO texts VALUES (?, ?, ?)", texts)
            self._new.executemany(INSERT_PAYLOAD, self._payloads())
            self._new.execute("UPDATE meta SET value = ? WHERE key = 'given'", (self._given or "[]",))
            self._new.executemany(INSERT_CONFIG, self._configs())
        begun = self._given is not None
        return Salvaged(EndMark(self._run, *ends), self._seconds, begun, self._without_messages)

    def _configs(self) -> list[tuple[Any, ...]]:
        """The configuration, if there is one that can be read."""
        with suppress(sqlite3.Error):
            return self._old.execute("SELECT value FROM meta WHERE key = 'config'").fetchall()
        return []

    def _events(self) -> Iterator[tuple[Any, ...]]:
        lost = {self._found.payloads[name] for name in self._found.lost_payloads}
        for row in rows_between(self._old, EVENTS, -1, self._found.last_event):
            seq, time, kind, data, *_ = row
            self._seconds = time
            if kind == RunStarted.kind:
                self._given = json.dumps(json.loads(unpack(data)).get("given") or [])
            elif kind == FlowClosed.kind:
                self._closed.add(json.loads(unpack(data)).get("flow"))
            yield self._changed(row, _PAYLOAD) if seq in lost else row

    def _calls(self) -> Iterator[tuple[Any, ...]]:
        """The trusted calls. Those with damaged texts lose their messages, as after a compaction, but keep their
        replies.
        """
        for row in rows_between(self._old, CALLS, 0, self._found.last_call):
            messages = row[_MESSAGES]
            refers = [] if messages is None else [text for _, text in json.loads(unpack(messages))]
            if self._found.texts.isdisjoint(refers):
                self._texts.update(refers)
                yield row
            else:
                self._without_messages += 1
                yield self._changed(row, _MESSAGES)

    def _changed(self, row: tuple[Any, ...], place: int) -> tuple[Any, ...]:
        """A row with one of its columns emptied, and with a new checksum if it had one."""
        columns = (*row[:place], None, *row[place + 1 : _CHECKSUM])
        return (*columns, None if row[_CHECKSUM] is None else checksum(self._seed, columns))

    def _payloads(self) -> Iterator[tuple[Any, ...]]:
        if self._found.unchecked != NO_ROWS_UNCHECKED:
            yield from self._older_payloads()
        for name in self._found.payloads.keys() - self._found.lost_payloads:
            yield self._old.execute(_KEPT_PAYLOAD, (name,)).fetchone()

    def _older_payloads(self) -> Iterator[tuple[Any, ...]]:
        """The payloads that an earlier version wrote, as far as they can be read. No event names them."""
        try:
            rows = self._old.execute("SELECT item, flow, data FROM payloads").fetchall()
        except sqlite3.Error:
            return
        for item, _, data in rows:
            flow = flow_of(item)
            if flow not in self._closed and item not in self._found.payloads:
                yield item, flow, data
