"""The newest rows of the runs that are watched, and which of them have changed since a version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import anyio

from flowevolve._util.clock import in_thread
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import Pulse, run_all
from flowevolve.page.live.following import Follower
from flowevolve.page.tables.columns import in_columns, in_rows
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.row import Row, Value
from flowevolve.page.tables.run import LogRow, RunRow
from flowevolve.page.tables.work import CallRow

MOST_ROWS = 50_000
"""The most requests, and the most lines of the log, that are kept of each run: the latest."""
_BOUNDED = {CallRow.table: "requests", LogRow.table: "lines of the log"}
_Place = tuple[str, tuple[Value, ...]]
"""A table and a key."""


class LiveRun:
    """A run that is watched."""

    def __init__(self, name: str, follower: Follower) -> None:
        self.name = name
        self.follower = follower
        self.tables = Tables()
        self._dropped = dict.fromkeys(_BOUNDED, 0)
        """How many of the rows that came first are gone, by table."""
        self._taken = 0
        """How many different keys have come."""
        self._first: dict[_Place, int] = {}
        """The place of a row among all, in the order in which their keys first came."""
        self._changed: dict[_Place, int] = {}
        """The version in which a row last changed, the latest last."""
        self._own: RunRow | None = None
        """The row of the run as it was last read."""
        self._trouble: str | None = None
        """Why nothing can be read."""

    async def read(self) -> Sequence[Row]:
        """The rows that have changed since the last time. While nothing can be read, the row of the run says why."""
        before = self._trouble
        try:
            rows = await self.follower.read()
        except InputError as error:
            rows, self._trouble = [], str(error)
        else:
            self._own = next((row for row in reversed(rows) if isinstance(row, RunRow)), self._own)
            self._trouble = None
        if self._own is None or self._trouble == before:
            return rows
        return [*rows, self._own if self._trouble is None else replace(self._own, error=self._trouble)]

    def take(self, rows: Sequence[Row], version: int) -> None:
        """Take in rows that have changed, as of a version."""
        self.tables.update(rows)
        for row in rows:
            place = (row.table, row.identity())
            if place not in self._first:
                self._first[place] = self._taken
                self._taken += 1
            self._changed.pop(place, None)
            self._changed[place] = version
        for table in _BOUNDED:
            self._drop_oldest(table)

    def _drop_oldest(self, table: str) -> None:
        """Keep a table within its bound, once it is a tenth over it, as dropping few rows takes as long as many."""
        above = self.tables.count(table) - MOST_ROWS
        if above < MOST_ROWS // 10:
            return
        for key in self.tables.drop_oldest(table, above):
            del self._first[table, key], self._changed[table, key]
        self._dropped[table] += above

    def since(self, version: int) -> dict[str, list[Row]]:
        """The rows that changed after a version, by table, those whose keys came first before the others."""
        places: list[_Place] = []
        for place, changed in reversed(self._changed.items()):
            if changed <= version:
                break
            places.append(place)
        rows: dict[str, list[Row]] = {}
        for table, key in sorted(places, key=self._first.__getitem__):
            rows.setdefault(table, []).append(self.tables.row(table, key))
        return rows

    async def snapshot(self) -> dict[str, JSON]:
        """All its rows as they are now, in columns. For a long run this takes seconds, in a thread."""
        left_out: list[JSON] = [*self._left_out()]
        tables = await in_thread(in_columns, self.tables.copy())
        return {"name": self.name, "tables": tables, "left_out": left_out}

    def _left_out(self) -> Iterator[str]:
        dropped = [f"{count:,} {_BOUNDED[table]}" for table, count in self._dropped.items() if count]
        if dropped:
            yield f"The first {' and '.join(dropped)} are not on this page; flowevolve report has them."


class Live:
    """Runs that are watched together."""

    def __init__(self, followers: Mapping[str, Follower]) -> None:
        self.runs = {name: LiveRun(name, follower) for name, follower in followers.items()}
        """The runs by name."""
        self.version = 0
        """Grows with each change of any run."""
        self.changed = Pulse()

    async def read(self) -> None:
        """Read what is new in the runs and, if there is anything, wake those who wait for changes."""
        await run_all([partial(self._read, run) for run in self.runs.values()])

    async def keep_reading(self, pause: float) -> None:
        """Read each run again and again, with pauses of ``pause`` seconds. No run waits for another one, which may
        hang.
        """
        async with anyio.create_task_group() as tasks:
            for run in self.runs.values():
                tasks.start_soon(self._keep_reading, run, pause)

    async def _keep_reading(self, run: LiveRun, pause: float) -> None:
        while True:
            await anyio.sleep(pause)
            await self._read(run)

    async def _read(self, run: LiveRun) -> None:
        rows = await run.read()
        if rows:
            self.version += 1
            run.take(rows, self.version)
            self.changed.fire()

    def since(self, version: int) -> list[JSON]:
        """For each run in which rows changed after a version: its name, and these rows by table."""
        changes = [(name, run.since(version)) for name, run in self.runs.items()]
        return [{"run": name, "tables": in_lists(rows)} for name, rows in changes if rows]


def in_lists(tables: Mapping[str, Sequence[Row]]) -> dict[str, JSON]:
    """Rows by table, each as a list of the values of its columns."""
    return {table: in_rows(rows) for table, rows in tables.items()}
