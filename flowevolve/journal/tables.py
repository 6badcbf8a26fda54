"""The tables of a journal, and how a journal of an earlier schema gets them."""

from __future__ import annotations

import json
import secrets
import sqlite3

from flowevolve._util.errors import InputError

WRITABLE = range(3, 7)
SCHEMA_VERSION = WRITABLE[-1]
"""Schema 1 had no ``calls.cached``. Schemas 1 and 2 hold requests in one column, and neither the order of events among
the calls nor payloads, so runs with these can be read but not resumed. Schema 3 had no ``calls.thinking``, schema 4 no
``calls.template``, and schema 5 no checksums, no ``events.calls`` and no ``events.payload``. A journal of schema 3, 4
or 5 gets the columns that it lacks when its run is resumed or compacted; in its older rows they stay empty.
"""

_SCHEMA = """
BEGIN;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, t REAL NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL, calls INTEGER, payload INTEGER,
    checksum INTEGER
);
CREATE INDEX proposals ON events (seq) WHERE kind = 'candidate.proposed';
CREATE TABLE payloads (item TEXT PRIMARY KEY, flow INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX payloads_flow ON payloads (flow);
CREATE TABLE texts (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data NOT NULL);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, role TEXT NOT NULL, model TEXT NOT NULL, stage TEXT NOT NULL,
    item TEXT NOT NULL, idx INTEGER NOT NULL, candidate TEXT, messages TEXT, temperature REAL, max_tokens INTEGER,
    seed INTEGER, reply TEXT, error TEXT, finish_reason TEXT, prompt_tokens INTEGER, completion_tokens INTEGER,
    cached_tokens INTEGER, attempts INTEGER NOT NULL, queued REAL NOT NULL, started REAL NOT NULL,
    finished REAL NOT NULL, cached INTEGER NOT NULL, thinking TEXT, template TEXT,
    checksum INTEGER
);
CREATE INDEX calls_item ON calls (item);
"""
INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)"
INSERT_CONFIG = "INSERT OR REPLACE INTO meta VALUES ('config', ?)"
INSERT_PAYLOAD = "INSERT OR REPLACE INTO payloads VALUES (?, ?, ?)"
INSERT_CALL = "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_CHANGE = """
BEGIN;
ALTER TABLE calls ADD COLUMN {} TEXT;
UPDATE meta SET value = '{}' WHERE key = 'schema';
COMMIT;
"""
_CHANGE_5 = """
BEGIN;
ALTER TABLE events ADD COLUMN calls INTEGER;
ALTER TABLE events ADD COLUMN payload INTEGER;
ALTER TABLE events ADD COLUMN checksum INTEGER;
ALTER TABLE calls ADD COLUMN checksum INTEGER;
INSERT INTO meta VALUES ('run', lower(hex(randomblob(8))));
INSERT INTO meta SELECT 'unchecked', json_array(
    (SELECT coalesce(max(seq), -1) FROM events), (SELECT coalesce(max(id), 0) FROM calls)
);
UPDATE meta SET value = '6' WHERE key = 'schema';
COMMIT;
"""
_CHANGES = {3: _CHANGE.format("thinking", 4), 4: _CHANGE.format("template", 5), 5: _CHANGE_5}
"""For each schema the statements that convert its journals to the next schema."""

NO_ROWS_UNCHECKED = (-1, 0)
"""The numbers of the last event and the last call without checksums, in a journal where all rows have them."""
_META_RUN, _META_UNCHECKED = "run", "unchecked"


def new_run() -> str:
    """A new, unique id for a run."""
    return secrets.token_hex(8)


def make_tables(
    database: sqlite3.Connection,
    run: str,
    given: str,
    unchecked: tuple[int, int] = NO_ROWS_UNCHECKED,
    *,
    config: str | None = None,
) -> None:
    """Create the tables of an empty journal. ``given`` and ``config`` are JSON; ``unchecked`` are the numbers of the
    last event and the last call that will have no checksums.
    """
    database.executescript(_SCHEMA)
    meta = {"schema": str(SCHEMA_VERSION), "given": given, _META_RUN: run, _META_UNCHECKED: json.dumps(unchecked)}
    database.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
    if config is not None:
        database.execute(INSERT_CONFIG, (config,))
    database.commit()


def read_run(database: sqlite3.Connection) -> str:
    """The id of the run of an up-to-date journal."""
    (run,) = database.execute("SELECT value FROM meta WHERE key = ?", (_META_RUN,)).fetchone()
    return str(run)


def bring_up_to_date(database: sqlite3.Connection) -> None:
    """Convert a journal of any schema in ``WRITABLE`` to the current schema."""
    for schema, change in _CHANGES.items():
        if find_schema(database) == schema:
            database.executescript(change)


def find_schema(database: sqlite3.Connection) -> int | None:
    """The schema of a journal; None if the file is empty.

    Raises:
        InputError: if the file is not a journal.
    """
    if database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
        return None
    try:
        (schema,) = database.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        return int(schema)
    except (sqlite3.OperationalError, TypeError, ValueError):
        (_, _, path) = database.execute("PRAGMA database_list").fetchone()
        raise InputError(f"{path} is no journal of flowevolve") from None
