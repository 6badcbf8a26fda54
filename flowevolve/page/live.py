"""The newest rows of the runs that are watched, and which of them have changed since when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import Pulse
from flowevolve.journal.reading import RecordedCall
from flowevolve.page.blame import blame
from flowevolve.page.columns import in_columns, in_rows
from flowevolve.page.memory import Tables
from flowevolve.page.source import RunSource, distinct_names
from flowevolve.page.tables import BlameRow, Row, Value

_Place = tuple[str, tuple[Value, ...]]
"""A table and a key."""


class LiveRun:
    """A run that is watched. `close` it.

    Raises:
        InputError: as `RunSource`.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._source = RunSource(path, name)
        self._lock = anyio.Lock()
        self._first: dict[_Place, int] = {}
        """Where a row stands among all: in the order in which their keys first came."""
        self._changed: dict[_Place, int] = {}
        """When a row last changed, the latest last."""
        self.name = name
        self.tables = Tables()
        self.trouble: str | None = None
        """Why it can't be read any more."""

    def close(self) -> None:
        self._source.close()

    async def read(self) -> Sequence[Row]:
        """The rows that the journal has changed since the last time. A run that can't be read is not read again."""
        if self.trouble is not None:
            return ()
        async with self._lock:
            try:
                return await in_thread(lambda: list(self._source.changes()))
            except InputError as error:
                self.trouble = str(error)
                return ()

    def take(self, rows: Sequence[Row], version: int) -> None:
        """Take in rows that have changed."""
        self.tables.update(rows)
        for row in rows:
            place = (row.table, row.identity())
            self._first.setdefault(place, len(self._first))
            self._changed.pop(place, None)
            self._changed[place] = version

    def since(self, version: int) -> dict[str, list[JSON]]:
        """The rows that changed after a version, by table, those whose keys came first before the others."""
        places: list[_Place] = []
        for place, changed in reversed(self._changed.items()):
            if changed <= version:
                break
            places.append(place)
        rows: dict[str, list[Row]] = {}
        for table, key in sorted(places, key=self._first.__getitem__):
            rows.setdefault(table, []).append(self.tables.row(table, key))
        return {table: in_rows(each) for table, each in rows.items()}

    async def call(self, number: int) -> RecordedCall | None:
        """A call with its texts."""
        async with self._lock:
            return await in_thread(lambda: self._source.recorded.call(number))

    async def blame(self, candidate: str) -> Sequence[BlameRow]:
        """Where the sentences of a candidate's texts came from."""
        tables = self.tables.copy()
        async with self._lock:
            return await in_thread(lambda: blame(tables, [candidate], self._source.reply))


class Live:
    """Runs that are watched together. `close` it.

    Raises:
        InputError: as `RunSource`.
    """

    def __init__(self, directories: Sequence[Path]) -> None:
        self.runs: dict[str, LiveRun] = {}
        """By name."""
        self.version = 0
        """Grows with each change of any run."""
        self.changed = Pulse()
        try:
            for name, path in distinct_names(directories).items():
                self.runs[name] = LiveRun(path, name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for run in self.runs.values():
            run.close()

    async def read(self) -> None:
        """Read what the journals have new, and wake those who wait for changes if there is anything."""
        for run in self.runs.values():
            rows = await run.read()
            if rows:
                self.version += 1
                run.take(rows, self.version)
                self.changed.fire()

    def since(self, version: int) -> list[JSON]:
        """For each run in which rows changed after a version: its name, and these rows by table."""
        changes = [(run.name, run.since(version)) for run in self.runs.values()]
        return [{"run": name, "tables": dict(rows)} for name, rows in changes if rows]

    def snapshot(self, name: str) -> dict[str, JSON]:
        """All rows of a run, in columns."""
        return {"name": name, "tables": in_columns(self.runs[name].tables), "left_out": []}
