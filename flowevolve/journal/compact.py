"""Makes the journal of an old run small: it drops the texts of calls and keeps everything that was counted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from flowevolve._util.errors import InputError, StorageError
from flowevolve.core.item_ids import flow_of
from flowevolve.engine.recovery.recovery import FIT
from flowevolve.journal.checksums import checksum, seed_of
from flowevolve.journal.lock import patient_lock
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.tables import WRITABLE, bring_up_to_date, read_run

_DROP = """
UPDATE calls SET messages = NULL, reply = NULL, thinking = NULL, checksum = iif(checksum IS NULL, NULL, checksum_of(
    id, seq, role, model, stage, item, idx, candidate, NULL, temperature, max_tokens, seed, NULL, error, finish_reason,
    prompt_tokens, completion_tokens, cached_tokens, attempts, queued, started, finished, cached, NULL, template
))
WHERE (messages IS NOT NULL OR reply IS NOT NULL)
    AND flow_of(item) IN (SELECT json_extract(data, '$.flow') FROM events WHERE kind = 'flow.close')
    AND (stage <> ? OR EXISTS (
        SELECT 1 FROM events WHERE kind = 'phase.ended' AND json_extract(data, '$.phase') = 'init'
    ))
"""
"""Calls of fit belong to the ticket of init, whose flow ends before fit: they are kept until init is over."""
_SWEEP = """
DELETE FROM texts WHERE id NOT IN (
    SELECT json_extract(message.value, '$[1]') FROM calls, json_each(calls.messages) AS message
    WHERE calls.messages IS NOT NULL
)
"""


@dataclass(frozen=True, slots=True)
class Compacted:
    """How many calls lost their texts, and the journal's size before and after, in bytes."""

    calls: int
    before: int
    after: int


def compact(path: Path) -> Compacted:
    """Drop the messages and replies of all calls whose flow, or fit, has ended, and give the space back to the disk.

    The texts of these calls can't be read or exported any more, and the run can't be replayed. Counts, times, tokens
    and errors stay, and so do all events with candidates and scores. A run that was cut off can still be resumed.

    Raises:
        DamagedError: if its journal is not as it was written.
        InputError: if there is no run, a process is at work in it, or its journal is of an older schema.
        StorageError: if the disk has no room for a second copy of the journal.
    """
    file = path / JOURNAL
    with RecordedRun(path) as recorded:
        if recorded.schema not in WRITABLE:
            raise InputError(
                f"{file} was written by an earlier version of flowevolve (schema {recorded.schema}) and is too old to "
                "be compacted"
            )
    lock = patient_lock(path)
    try:
        with RecordedRun(path) as recorded:
            recorded.check()
        with closing(sqlite3.connect(file)) as database:
            before = _size(database)
            bring_up_to_date(database)
            database.create_function("flow_of", 1, _flow_of, deterministic=True)
            seed = seed_of(read_run(database))
            database.create_function("checksum_of", -1, lambda *row: checksum(seed, row), deterministic=True)
            with database:
                calls = database.execute(_DROP, (FIT,)).rowcount
                database.execute(_SWEEP)
            database.execute("VACUUM")
            return Compacted(calls, before, _size(database))
    except sqlite3.Error as error:
        raise StorageError(f"{file} could not be compacted: {error}. Nothing in it is lost") from error
    finally:
        lock.release()


def _size(database: sqlite3.Connection) -> int:
    ((pages,), (size,)) = (database.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    return int(pages * size)


def _flow_of(item: str | bytes) -> int | None:
    """The flow of an item; None for a call outside all flows, such as one on the test split."""
    try:
        return flow_of(str(item))
    except ValueError:
        return None
