"""The journal: every event and every finished LLM call of a run, in one SQLite file.

Rows are written in the order in which they are handed over, whole steps at a time (`flowevolve._util.sqlite_writer`).
The run waits for the disk only in ``settled``, ``flush`` and ``close``. docs/reference/run-directory.md says what
survives a crash. During the run the file is in WAL mode, so that others may read it (`flowevolve.journal.reading`).
When it is closed, it is one plain file. Every event and every call has a checksum, which
`flowevolve.journal.examination` verifies. A mark beside the file says how far the journal had come;
`flowevolve.journal.opening` compares the two.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Literal

from flowevolve._util.clock import is_virtual
from flowevolve._util.errors import FROM_ITS_POOL, InputError, StorageError, reason_of
from flowevolve._util.json_text import json_text
from flowevolve._util.json_types import JSON
from flowevolve._util.logger import logger
from flowevolve._util.sqlite_writer import Writer
from flowevolve._util.values import value
from flowevolve.core.calls import CallRecord
from flowevolve.core.event_kinds import CandidateProposed, FlowClosed
from flowevolve.core.events import Event
from flowevolve.core.item_ids import flow_of
from flowevolve.core.model import ChatReply, ChatRequest, EmbedRequest
from flowevolve.core.payload_kinds import NotKeptError
from flowevolve.core.templates import Prompt
from flowevolve.engine.recovery.interrupted_work import StoredResult
from flowevolve.journal.checksums import checksum, payload_checksum, seed_of
from flowevolve.journal.end_mark import END_MARK_SUFFIX, EndMark, EndMarkFile
from flowevolve.journal.files import how_to_mend
from flowevolve.journal.payloads import dump
from flowevolve.journal.tables import (
    INSERT_CALL,
    INSERT_CONFIG,
    INSERT_EVENT,
    INSERT_PAYLOAD,
    WRITABLE,
    bring_up_to_date,
    find_schema,
    make_tables,
    new_run,
    read_run,
)
from flowevolve.journal.texts import Texts, is_unicode, pack, unpack

BUSY_SECONDS = 60.0
"""For how many seconds a write waits while another process writes to the file. No process of flowevolve does so during
a run.
"""

EMBEDDED = "input"
"""The role under which the texts of an embedding request are stored, since these have no roles."""

Sync = Literal["normal", "full"]
"""What a settled step survives: with ``normal`` a crash of the process, with ``full`` also a loss of power."""

_FLOW_CLOSED = "DELETE FROM payloads WHERE flow = ?"
_PROPOSALS = "SELECT data FROM events WHERE kind = 'candidate.proposed'"
_Row = tuple[str, tuple[object, ...]]
"""A statement and its values."""


@value
class _Event:
    """The columns of an event on its way to the writer's thread, which adds the checksum."""

    seq: int
    columns: tuple[object, ...]


@value
class _Call:
    """A call on its way to the writer's thread, which builds its row: that would take too long in the event loop."""

    number: int
    record: CallRecord
    seq: int
    origin: float


class Journal:
    """Writes a new journal to ``path``, or with ``resume`` goes on with the one that is there. `close` it at the end.

    ``given`` names what the run was given as objects, and ``config`` is its configuration, as JSON. A new journal has
    both in its table ``meta`` from the moment it has tables.

    Raises:
        InputError: if the file can't be opened as a journal, already holds one, or with ``resume`` has none to go on
            with.
    """

    def __init__(
        self,
        path: Path,
        *,
        resume: bool = False,
        sync: Sync = "normal",
        given: Sequence[JSON] = (),
        config: str | None = None,
    ) -> None:
        self._origin = 0.0
        self._path = path
        self._artifacts: set[str] = set()
        self._not_kept: set[str] = set()
        self._last_event = -1
        self._last_call = 0
        self._written = (-1, 0)
        if resume and not path.exists():
            raise InputError(f"{path}: there is no journal to go on with; start a new run")
        with ExitStack() as stack:
            try:
                database = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
                self._database = stack.enter_context(closing(database))
                self._open(resume, given, config)
                run = read_run(self._database)
                mark = EndMark(run, self._last_event, self._last_call)
                self._end_mark = stack.enter_context(closing(EndMarkFile(path.with_suffix(END_MARK_SUFFIX), mark)))
                # Only now: thus a journal in WAL mode has tables and a mark even if its log is missing.
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute(f"PRAGMA synchronous={sync}")
            except sqlite3.Error as error:
                raise InputError(f"{path}: a journal can't be written here: {error}") from error
            self._seed = seed_of(run)
            self._texts = Texts(self._database)
            self._file = path.stat()
            self._writer = Writer(self._database, "journal", self._write, self._committed, self._check_file)
            stack.pop_all()

    def begin(self, origin: float) -> None:
        """Count the times of calls from ``origin``, the event loop's time at which the run began."""
        self._origin = origin

    def configure(self, config: str) -> None:
        """Note the configuration, as JSON, with which the run goes on."""
        self._writer.put((INSERT_CONFIG, (config,)))

    def event(self, event: Event) -> None:
        """An `flowevolve.core.events.EventLog` sink."""
        self._last_event = event.seq
        body = event.body
        if isinstance(body, CandidateProposed):
            self._artifacts.add(body.artifact)
        payload = None if event.attachment is None else self._dump(event.attachment)
        payload_sum = None if payload is None else payload_checksum(payload)
        time = event.time + 0.0
        columns = (event.seq, time, event.kind, json_text(event.data), self._last_call, payload_sum)
        self._writer.put(_Event(event.seq, columns))
        if isinstance(body, FlowClosed):
            self._writer.put((_FLOW_CLOSED, (body.flow,)))
        if payload is not None:
            name = event.attached_to
            self._writer.put((INSERT_PAYLOAD, (name, flow_of(name), payload)))

    def call(self, record: CallRecord) -> None:
        """An `flowevolve.llm.client.client.LLMClient` observer."""
        self._last_call += 1
        self._writer.put(_Call(self._last_call, record, self._last_event, self._origin))

    async def settled(self) -> None:
        """Return when everything handed over so far is written. On a virtual clock, where nothing may wait, return at
        once.

        Raises:
            StorageError: if something could not be written; what was written before that stays.
        """
        if is_virtual():
            self._writer.hand_over()
        else:
            await self._writer.settled()
        self._check()

    def flush(self) -> None:
        """Return when everything handed over so far is written, on a virtual clock too. This blocks the event loop.

        Raises:
            StorageError: if something could not be written; what was written before that stays.
        """
        self._writer.flush()
        self._check()

    def close(self) -> None:
        """Write what is left and close the file. May be called twice.

        Raises:
            StorageError: if something could not be written, on a full disk for example.
        """
        self._writer.close()
        with suppress(sqlite3.Error):  # it is closed already, or stays in WAL mode because somebody reads it
            self._database.execute("PRAGMA busy_timeout=0")
            self._database.execute("PRAGMA journal_mode=DELETE")
        self._database.close()
        self._end_mark.close()
        self._check()

    def _open(self, resume: bool, given: Sequence[JSON], config: str | None) -> None:
        """Create the tables of a new journal, or update the one that is there and read how far it goes."""
        database = self._database
        schema = find_schema(database)
        if schema is None and resume:
            raise InputError(f"{self._path}: there is no journal to go on with; start a new run")
        if schema is not None and not resume:
            raise InputError(f"{self._path} holds a journal already; resume that run, or write somewhere else")
        if schema is not None and schema not in WRITABLE:
            raise InputError(
                f"{self._path} was written by an earlier version of flowevolve (schema {schema}), whose runs can't be "
                f"resumed; report and export can read it. To go on, {FROM_ITS_POOL}"
            )
        if schema is None:
            make_tables(database, new_run(), json_text(list(given)), config=config)
        else:
            bring_up_to_date(database)
            for (data,) in database.execute(_PROPOSALS):
                self._artifacts.add(json.loads(unpack(data))["artifact"])
            (last,) = database.execute("SELECT max(seq) FROM events").fetchone()
            self._last_event = -1 if last is None else last
            (last_call,) = database.execute("SELECT max(id) FROM calls").fetchone()
            self._last_call = last_call or 0
            self._written = (self._last_event, self._last_call)

    def _dump(self, payload: object) -> bytes | None:
        try:
            return dump(payload, self._artifacts)
        except NotKeptError as error:
            self._warn(type(payload.value if isinstance(payload, StoredResult) else payload).__name__, str(error))
            return None

    def _warn(self, payload: str, why: str) -> None:
        """Warn once for each type of payload that can't be kept. After a crash, such work is done again."""
        if payload not in self._not_kept:
            self._not_kept.add(payload)
            logger().warning("payload.not_kept", payload=payload, why=why)

    def _check(self) -> None:
        failure = self._writer.failure
        if isinstance(failure, StorageError):
            raise failure
        if failure is not None:
            raise StorageError(
                f"{self._path}: the journal could not be written: {reason_of(failure)}. What was written before that "
                f"is safe; {how_to_mend(failure)}, and resume the run"
            ) from failure

    # In the writer's thread

    def _check_file(self) -> None:
        """Raise an error if the file was removed or replaced. SQLite would go on writing to it, and all of that would
        be lost.
        """
        try:
            same = os.path.samestat(self._path.stat(), self._file)
        except FileNotFoundError:
            same = False
        if not same:
            raise StorageError(
                f"{self._path} was removed, moved or replaced during the run, so the run was ended before "
                "anything more was paid for; if you moved it, resume the run in its new place"
            )

    def _write(self, database: sqlite3.Connection, rows: Sequence[_Row | _Event | _Call]) -> None:
        events = [row for row in rows if isinstance(row, _Event)]
        calls = [row for row in rows if isinstance(row, _Call)]
        database.executemany(INSERT_EVENT, [self._checked(event.columns) for event in events])
        database.executemany(INSERT_CALL, [self._checked(self._columns(call)) for call in calls])
        for row in rows:
            if isinstance(row, tuple):
                database.execute(*row)
        last_event, last_call = self._written
        self._written = (events[-1].seq if events else last_event, calls[-1].number if calls else last_call)

    def _checked(self, columns: Sequence[object]) -> tuple[object, ...]:
        """A row with its checksum."""
        try:
            return (*columns, checksum(self._seed, columns))
        except UnicodeEncodeError:
            storable = [_storable(value) for value in columns]
            return (*storable, checksum(self._seed, storable))

    def _committed(self, rows: Sequence[_Row | _Event | _Call]) -> None:
        if rows and self._writer.failure is None:
            self._end_mark.move(*self._written)

    def _columns(self, call: _Call) -> tuple[object, ...]:
        record, origin = call.record, call.origin
        scope, request, reply = record.scope, record.request, record.reply
        messages = [[role, self._texts.number(text)] for role, text in _said(request)]
        where = (
            call.number,
            call.seq,
            record.role,
            request.model,
            scope.stage,
            scope.item,
            scope.index,
            scope.candidate,
        )
        sampling: tuple[object, ...] = (None, None, None)
        if isinstance(request, ChatRequest):
            warmth = None if request.temperature is None else request.temperature + 0.0
            sampling = (warmth, request.max_tokens, request.seed)
        asked = (json_text(messages), *sampling)
        times = (record.queued - origin + 0.0, record.started - origin + 0.0, record.finished - origin + 0.0)
        rest = (record.attempts, *times, int(record.cached))
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
    """Name and version of the template that the first message of a chat was written from; None if there is none."""
    content = request.messages[0].content if isinstance(request, ChatRequest) and request.messages else None
    return content.template if isinstance(content, Prompt) else None


def _storable(value: object) -> object:
    return pack(value) if isinstance(value, str) and not is_unicode(value) else value
