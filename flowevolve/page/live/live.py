"""The newest rows of the runs that are watched, and which of them have changed since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import anyio

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import Pulse, run_all
from flowevolve.page.live.following import Follower
from flowevolve.page.tables.columns import in_columns, in_rows
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.row import Row, Value
from flowevolve.page.tables.run import RunRow

_Place = tuple[str, tuple[Value, ...]]
"""A table and a key."""


class LiveRun:
    """A run that is watched."""

    def __init__(self, name: str, follower: Follower) -> None:
        self.name = name
        self.follower = follower
        self.tables = Tables()
        self._first: dict[_Place, int] = {}
        """Where a row stands among all: in the order in which their keys first came."""
        self._changed: dict[_Place, int] = {}
        """When a row last changed, the latest last."""
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
        """Take in rows that have changed."""
        self.tables.update(rows)
        for row in rows:
            place = (row.table, row.identity())
            self._first.setdefault(place, len(self._first))
            self._changed.pop(place, None)
            self._changed[place] = version

    def since(self, version: int) -> dict[str, JSON]:
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

    def snapshot(self) -> dict[str, JSON]:
        """All its rows, in columns."""
        return {"name": self.name, "tables": in_columns(self.tables), "left_out": []}


class Live:
    """Runs that are watched together."""

    def __init__(self, followers: Mapping[str, Follower]) -> None:
        self.runs = {name: LiveRun(name, follower) for name, follower in followers.items()}
        """By name."""
        self.version = 0
        """Grows with each change of any run."""
        self.changed = Pulse()

    async def read(self) -> None:
        """Read what the runs have new, and wake those who wait for changes if there is anything."""
        await run_all([partial(self._read, run) for run in self.runs.values()])

    async def keep_reading(self, pause: float) -> None:
        """Read each run again and again, with pauses of so many seconds. None waits for another one, which may hang."""
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
        return [{"run": name, "tables": rows} for name, rows in changes if rows]
