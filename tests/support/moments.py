"""Copies of a run directory as a kill would leave it, taken in the middle of what SQLite does."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

STEPS = 7
"""Of SQLite's machine, between two moments."""


class Moments:
    """Counts the moments in the work of all connections that may write, and copies ``folder`` at one of them.

    The copy is made in the thread that writes, so the files stand still meanwhile. What SQLite has in memory it
    writes out early, as where memory is short.
    """

    def __init__(self) -> None:
        self._left = 0
        self._folder = self._copy = Path()

    @contextmanager
    def counted(self) -> Iterator[None]:
        connect = sqlite3.connect

        def watched(*args: object, **kwargs: object) -> sqlite3.Connection:
            database: sqlite3.Connection = connect(*args, **kwargs)  # type: ignore[call-overload]
            if not kwargs.get("uri"):
                database.execute("PRAGMA cache_size=1")
                database.execute("PRAGMA wal_autocheckpoint=8")
                database.set_progress_handler(self._count, STEPS)
            return database

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite3, "connect", watched)
            yield

    def copy_after(self, moments: int, folder: Path, copy: Path) -> None:
        """Copy the folder when so many moments have passed."""
        self._left, self._folder, self._copy = moments, folder, copy

    def stop(self) -> bool:
        """Count no longer; returns whether the copy was made."""
        self._left = 0
        return self._copy.exists()

    def _count(self) -> None:
        if self._left > 0:
            self._left -= 1
            if self._left == 0:
                shutil.copytree(self._folder, self._copy)
