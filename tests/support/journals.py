"""Journals that tests alter on purpose."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_FORGET = "UPDATE meta SET value = '[1000000000, 1000000000]' WHERE key = 'unchecked'"


@contextmanager
def edited(directory: Path) -> Iterator[sqlite3.Connection]:
    """The journal of a run directory, to be changed so that no checksum tells of it."""
    with closing(sqlite3.connect(directory / "journal.sqlite")) as database:
        yield database
        database.execute(_FORGET)
        database.execute("UPDATE events SET calls = NULL, payload = NULL")
        database.commit()
    (directory / "journal.end").unlink(missing_ok=True)
