"""Writing to SQLite off the event loop.

Rows are handed over in order and written in that order by one thread, many to a transaction.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

BATCH = 1000
"""Rows a transaction holds at most; what a crash of the process can lose is at most what is not yet handed over."""

Row = tuple[str, tuple[object, ...]]
"""A statement and its values."""


class Writer:
    """Writes to a connection that nobody else uses, opened with ``check_same_thread=False``; `close` it before that.

    ``settled`` is called in the thread with each batch, once it is written or given up. After the first failure
    everything is given up.
    """

    def __init__(
        self, database: sqlite3.Connection, name: str, settled: Callable[[Sequence[Row]], None] = lambda rows: None
    ) -> None:
        self.failure: sqlite3.Error | None = None
        self._database = database
        self._settled = settled
        self._rows: SimpleQueue[Row | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, name=name, daemon=True)
        self._thread.start()

    def put(self, statement: str, values: tuple[object, ...]) -> None:
        """Hand over a row; never waits."""
        self._rows.put((statement, values))

    def close(self) -> None:
        """Return when all is written or given up. May be called twice."""
        if self._thread.is_alive():
            self._rows.put(None)
            self._thread.join()

    def _write(self) -> None:
        open_ended = True
        while open_ended:
            batch = [self._rows.get()]
            while len(batch) < BATCH and batch[-1] is not None:
                try:
                    batch.append(self._rows.get_nowait())
                except Empty:
                    break
            if batch[-1] is None:
                open_ended = False
                batch.pop()
            rows = [row for row in batch if row is not None]
            self._write_batch(rows)
            self._settled(rows)

    def _write_batch(self, batch: Sequence[Row]) -> None:
        if self.failure is not None:
            return
        try:
            with self._database:
                for statement, values in batch:
                    self._database.execute(statement, values)
        except sqlite3.Error as error:
            self.failure = error
