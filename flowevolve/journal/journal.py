"""The journal: every event and every finished LLM call of a run, in one SQLite file.

Rows are written in the order in which they are handed over, whole steps at a time (`flowevolve._util.sqlite_writer`);
the event loop waits for the disk only in ``settled`` and ``close``. docs/reference/run-directory.md says what survives
a crash. During the run the file is in WAL mode, so that others may read it (`flowevolve.journal.reading`). When it is
closed, it is one plain file.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flowevolve._util.clock import VirtualClockLoop
from flowevolve._util.errors import InputError, StorageError
from flowevolve._util.json_types import JSON
from flowevolve._util.logger import logger
from flowevolve._util.sqlite_writer import Writer
from flowevolve.core.calls import CallRecord
from flowevolve.core.event_kinds import CandidateProposed, FlowClosed
from flowevolve.core.events import Event
from flowevolve.core.item_ids import flow_of
from flowevolve.core.model import ChatReply, ChatRequest, EmbedRequest
from flowevolve.core.payload_kinds import NotKeptError
from flowevolve.core.templates import Prompt
from flowevolve.engine.recovery.interrupted_work import StoredResult
from flowevolve.journal.payloads import dump
from flowevolve.journal.texts import Texts, is_unicode, pack, unpack

WRITABLE = range(3, 6)
SCHEMA_VERSION = WRITABLE[-1]
"""Schema 1 had no ``calls.cached``. Schemas 1 and 2 hold requests in one column, and neither the order of events among
the calls nor payloads, so runs with these can be read but not resumed. Schema 3 had no ``calls.thinking``, and
schema 4 no ``calls.template``; a journal without them gets these columns when its run is resumed or compacted."""

BUSY_SECONDS = 60.0
"""How long a write waits for another process that writes to the file. No process of flowevolve does during a run."""

EMBEDDED = "input"
"""What stands in place of a message's role where a text was to be embedded."""

Sync = Literal["normal", "full"]
"""What a settled step survives: ``normal`` a crash of the process, ``full`` a loss of power, too."""

_SCHEMA = """
BEGIN;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE events (seq INTEGER PRIMARY KEY, t REAL NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX proposals ON events (seq) WHERE kind = 'candidate.proposed';
CREATE TABLE payloads (item TEXT PRIMARY KEY, flow INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX payloads_flow ON payloads (flow);
CREATE TABLE texts (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data NOT NULL);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, role TEXT NOT NULL, model TEXT NOT NULL, stage TEXT NOT NULL,
    item TEXT NOT NULL, idx INTEGER NOT NULL, candidate TEXT, messages TEXT, temperature REAL, max_tokens INTEGER,
    seed INTEGER, reply TEXT, error TEXT, finish_reason TEXT, prompt_tokens INTEGER, completion_tokens INTEGER,
    cached_tokens INTEGER, attempts INTEGER NOT NULL, queued REAL NOT NULL, started REAL NOT NULL,
    finished REAL NOT NULL, cached INTEGER NOT NULL, thinking TEXT, template TEXT
);
CREATE INDEX calls_item ON calls (item);
"""
_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?)"
_PAYLOAD = "INSERT OR REPLACE INTO payloads VALUES (?, ?, ?)"
_FLOW_CLOSED = "DELETE FROM payloads WHERE flow = ?"
_CALL = "INSERT INTO calls VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PROPOSALS = "SELECT data FROM events WHERE kind = 'candidate.proposed'"
_CHANGE = """
BEGIN;
ALTER TABLE calls ADD COLUMN {} TEXT;
UPDATE meta SET value = '{}' WHERE key = 'schema';
COMMIT;
"""
_CHANGES = {3: _CHANGE.format("thinking", 4), 4: _CHANGE.format("template", 5)}
"""What makes a journal of a schema one of the next."""

_Row = tuple[str, tuple[object, ...]]
"""A statement and its values."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call on its way to the writer's thread, which makes its row: in the event loop that would take too long."""

    record: CallRecord
    seq: int
    origin: float


class Journal:
    """Writes to ``path``: a new journal, or with ``resume`` the one that is there. `close` it at the end.

    A new one notes in ``meta`` what the run was ``given`` as objects.

    Raises:
        InputError: if the file can't be opened as a journal, holds one already, or has none to go on with.
    """

    def __init__(self, path: Path, *, resume: bool = False, sync: Sync = "normal", given: Sequence[JSON] = ()) -> None:
        self._origin = 0.0
        self._path = path
        self._artifacts: set[str] = set()
        self._not_kept: set[str] = set()
        self._last_event = -1
        if resume and not path.exists():
            raise InputError(f"{path}: no journal to go on with; start a new run")
        with ExitStack() as stack:
            try:
                database = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
                self._database = stack.enter_context(closing(database))
                self._open(resume, given)
                self._database.execute(f"PRAGMA synchronous={sync}")
            except sqlite3.Error as error:
                raise InputError(f"{path}: can't write a journal here: {error}") from error
            self._texts = Texts(self._database)
            self._file = path.stat()
            self._writer = Writer(self._database, "journal", self._write, check=self._check_file)
            stack.pop_all()

    def begin(self, origin: float) -> None:
        """Count the times of calls from ``origin``, the event loop's time at which the run began."""
        self._origin = origin

    def event(self, event: Event) -> None:
        """An `flowevolve.core.events.EventLog` sink."""
        self._last_event = event.seq
        self._writer.put((_EVENT, (event.seq, event.time, event.kind, _json(event.data))))
        match event.body:
            case CandidateProposed(artifact=artifact):
                self._artifacts.add(artifact)
            case FlowClosed(flow=flow):
                self._writer.put((_FLOW_CLOSED, (flow,)))
        if event.attachment is not None:
            self._save(event.attached_to, event.attachment)

    def call(self, record: CallRecord) -> None:
        """An `flowevolve.llm.client.client.LLMClient` observer."""
        self._writer.put(_Call(record, self._last_event, self._origin))

    async def settled(self) -> None:
        """Return when everything handed over so far is written; on a virtual clock, where nothing may wait, at once.

        Raises:
            StorageError: if something could not be written; what was written before that stays.
        """
        if isinstance(asyncio.get_running_loop(), VirtualClockLoop):
            self._writer.hand_over()
        else:
            await self._writer.settled()
        self._check()

    def close(self) -> None:
        """Write what is left and close the file. May be called twice.

        Raises:
            StorageError: if something could not be written, on a full disk for example.
        """
        self._writer.close()
        with suppress(sqlite3.Error):  # it is closed already, or somebody reads it, so that it stays in WAL mode
            self._database.execute("PRAGMA busy_timeout=0")
            self._database.execute("PRAGMA journal_mode=DELETE")
        self._database.close()
        self._check()

    def _open(self, resume: bool, given: Sequence[JSON]) -> None:
        """Make the tables of a new journal, or look at the one that is there."""
        database = self._database
        schema = find_schema(database)
        if schema is None and resume:
            raise InputError(f"{self._path}: no journal to go on with; start a new run")
        if schema is not None and not resume:
            raise InputError(f"{self._path}: holds a journal already; resume that run, or write somewhere else")
        if schema is not None and schema not in WRITABLE:
            raise InputError(
                f"{self._path}: is a journal of schema {schema}, and only those of schema {WRITABLE[0]} and later can "
                "be gone on with; report and export read it; to go on, start a new run"
            )
        database.execute("PRAGMA journal_mode=WAL")
        if schema is None:
            database.executescript(_SCHEMA)
            meta = {"schema": str(SCHEMA_VERSION), "given": _json(list(given))}
            database.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
            database.commit()
        else:
            bring_up_to_date(database)
            for (data,) in database.execute(_PROPOSALS):
                self._artifacts.add(json.loads(unpack(data))["artifact"])
            (last,) = database.execute("SELECT max(seq) FROM events").fetchone()
            self._last_event = -1 if last is None else last

    def _save(self, name: str, payload: object) -> None:
        try:
            data = dump(payload, self._artifacts)
        except NotKeptError as error:
            self._warn(type(payload.value if isinstance(payload, StoredResult) else payload).__name__, str(error))
        else:
            self._writer.put((_PAYLOAD, (name, flow_of(name), data)))

    def _warn(self, payload: str, why: str) -> None:
        """Warn once for each type of payload that can't be kept: after a crash such work is done anew."""
        if payload not in self._not_kept:
            self._not_kept.add(payload)
            logger().warning("payload.not_kept", payload=payload, why=why)

    def _check(self) -> None:
        failure = self._writer.failure
        if isinstance(failure, StorageError):
            raise failure
        if failure is not None:
            raise StorageError(
                f"{self._path}: the journal is not complete: {failure}; what was written before that is safe: "
                "see that there is space, and resume"
            ) from failure

    # In the writer's thread

    def _check_file(self) -> None:
        """SQLite goes on writing to a file that was removed, and all of it would be lost."""
        try:
            same = os.path.samestat(self._path.stat(), self._file)
        except FileNotFoundError:
            same = False
        if not same:
            raise StorageError(
                f"{self._path}: was removed, moved or replaced while the run was going on, so nothing more is asked or "
                "paid; if it was moved, resume the run where it is now"
            )

    def _write(self, database: sqlite3.Connection, row: _Row | _Call) -> None:
        statement, values = (_CALL, self._columns(row)) if isinstance(row, _Call) else row
        try:
            database.execute(statement, values)
        except UnicodeEncodeError:
            database.execute(statement, [_storable(value) for value in values])

    def _columns(self, call: _Call) -> tuple[object, ...]:
        record, origin = call.record, call.origin
        scope, request, reply = record.scope, record.request, record.reply
        messages = [[role, self._texts.number(text)] for role, text in _said(request)]
        where = (call.seq, record.role, request.model, scope.stage, scope.item, scope.index, scope.candidate)
        sampling: tuple[object, ...] = (None, None, None)
        if isinstance(request, ChatRequest):
            sampling = (request.temperature, request.max_tokens, request.seed)
        asked = (_json(messages), *sampling)
        times = (record.queued - origin, record.started - origin, record.finished - origin)
        rest = (record.attempts, *times, record.cached)
        template = _template(request)
        usage = record.failed_usage if reply is None else reply.usage
        tokens = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
        if reply is None:
            return (
                *where,
                *asked,
                None,
                record.error,
                None,
                *(tokens if any(tokens) else (None,) * 3),
                *rest,
                None,
                template,
            )
        thinking = pack(reply.thinking) if isinstance(reply, ChatReply) and reply.thinking else None
        return (*where, *asked, pack(reply.text), record.error, reply.finish_reason, *tokens, *rest, thinking, template)


def _said(request: ChatRequest | EmbedRequest) -> list[tuple[str, str]]:
    if isinstance(request, EmbedRequest):
        return [(EMBEDDED, text) for text in request.texts]
    return [(message.role, message.content) for message in request.messages]


def _template(request: ChatRequest | EmbedRequest) -> str | None:
    """What the prompt that a chat begins with was written from."""
    said = request.messages[0].content if isinstance(request, ChatRequest) and request.messages else None
    return said.template if isinstance(said, Prompt) else None


def bring_up_to_date(database: sqlite3.Connection) -> None:
    """Give a journal of a schema that can be written the form of the present one."""
    for schema, change in _CHANGES.items():
        if find_schema(database) == schema:
            database.executescript(change)


def find_schema(database: sqlite3.Connection) -> int | None:
    """The schema of a journal; None if the file is empty.

    Raises:
        InputError: if it is something else.
    """
    if database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
        return None
    try:
        (schema,) = database.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        return int(schema)
    except (sqlite3.Error, TypeError, ValueError):
        (_, _, path) = database.execute("PRAGMA database_list").fetchone()
        raise InputError(f"{path}: is no journal of flowevolve") from None


def _storable(value: object) -> object:
    return pack(value) if isinstance(value, str) and not is_unicode(value) else value


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
