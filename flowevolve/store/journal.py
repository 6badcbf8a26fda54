"""The journal: every event and every finished LLM call of a run, in one SQLite file.

Rows are written in the order in which they are handed over; the event loop never waits for the disk. ``close`` returns
when all is written. The file is in WAL mode: others may read it during the run.

Schema 2 added ``calls.cached`` as the last column; a journal of schema 1 has no cached calls, and opening it adds it.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Self

from flowevolve.errors import InputError, StorageError
from flowevolve.events import Event
from flowevolve.llm.calls import CallRecord
from flowevolve.llm.types import JSON, ChatRequest, EmbedRequest
from flowevolve.writer import Writer

SCHEMA_VERSION = 2

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, t REAL NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY, role TEXT NOT NULL, model TEXT NOT NULL, stage TEXT NOT NULL, item TEXT NOT NULL,
    idx INTEGER NOT NULL, candidate TEXT, request TEXT NOT NULL, reply TEXT, error TEXT, finish_reason TEXT,
    prompt_tokens INTEGER, completion_tokens INTEGER, cached_tokens INTEGER,
    attempts INTEGER NOT NULL, queued REAL NOT NULL, started REAL NOT NULL, finished REAL NOT NULL,
    cached INTEGER NOT NULL DEFAULT 0
);
"""
_INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?)"
_INSERT_CALL = "INSERT INTO calls VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_CACHED = "ALTER TABLE calls ADD COLUMN cached INTEGER NOT NULL DEFAULT 0"


class Journal:
    """Writes to ``path``. Use as a context manager, or call ``close``.

    Raises:
        InputError: if the file can't be opened as a journal.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._database = sqlite3.connect(path, check_same_thread=False)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.executescript(_SCHEMA)
            if all(name != "cached" for _, name, *_ in self._database.execute("PRAGMA table_info(calls)")):
                self._database.execute(_ADD_CACHED)
            self._database.execute("INSERT OR REPLACE INTO meta VALUES ('schema', ?)", (str(SCHEMA_VERSION),))
            self._database.commit()
        except sqlite3.Error as error:
            raise InputError(f"{path}: can't write a journal here: {error}") from error
        self._writer = Writer(self._database, "journal")

    def event(self, event: Event) -> None:
        """An `flowevolve.events.EventLog` sink."""
        self._writer.put(_INSERT_EVENT, (event.seq, event.time, event.kind, _json(dict(event.data))))

    def call(self, record: CallRecord) -> None:
        """An `flowevolve.llm.client.LLMClient` observer."""
        scope, request, reply = record.scope, record.request, record.reply
        usage = reply.usage if reply is not None else None
        answered = (
            None if reply is None else reply.text,
            record.error,
            None if reply is None else reply.finish_reason,
            *(
                (None, None, None)
                if usage is None
                else (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
            ),
        )
        where = (record.role, request.model, scope.stage, scope.item, scope.index, scope.candidate)
        times = (record.attempts, record.queued, record.started, record.finished)
        self._writer.put(_INSERT_CALL, (*where, _json(_asked(request)), *answered, *times, record.cached))

    def close(self) -> None:
        """Write what is left and close the file. May be called twice.

        Raises:
            StorageError: if something could not be written, on a full disk for example.
        """
        self._writer.close()
        self._database.close()
        failure = self._writer.failure
        if failure is not None:
            raise StorageError(
                f"{self._path}: the journal is not complete: {failure}; free some space and run again"
            ) from failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _asked(request: ChatRequest | EmbedRequest) -> dict[str, JSON]:
    if isinstance(request, EmbedRequest):
        return {"input": list(request.texts)}
    return {
        "messages": [[message.role, message.content] for message in request.messages],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
