"""What is said of a run that can't be read for a while."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.acts import Act
from flowevolve.page.live.live import Live
from flowevolve.page.reading.source import RunSource
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.row import Row
from flowevolve.page.tables.run import RunRow
from flowevolve.runner.result import Result

pytestmark = pytest.mark.asyncio


class Scripted:
    """A run of which this is read, one after the other."""

    only_shown = None

    def __init__(self, *reads: Sequence[Row] | InputError) -> None:
        self._reads = list(reads)

    async def read(self) -> Sequence[Row]:
        read = self._reads.pop(0)
        if isinstance(read, InputError):
            raise read
        return read

    async def call(self, number: int) -> JSON:
        return None

    async def blame(self, tables: Tables, candidate: str) -> JSON:
        return None

    async def act(self, act: Act, by: str) -> str | None:
        return None


@pytest.fixture
def failed(directory: Path, result: Result) -> RunRow:
    """The row of a run that failed."""
    with RunSource(directory, "run") as source:
        (row,) = [row for row in source.changes() if isinstance(row, RunRow)]
    return replace(row, state="failed", error="its own")


async def errors(*reads: Sequence[Row] | InputError) -> list[str | None]:
    """What the row of the run says after each of these reads."""
    live, said = Live({"run": Scripted(*reads)}), list[str | None]()
    for _ in reads:
        await live.read()
        row = live.runs["run"].tables.get(RunRow, "run")
        said.append(None if row is None else row.error)
    return said


GONE, DAMAGED = InputError("is gone"), InputError("is damaged")


async def test_a_run_that_can_be_read_again_has_its_own_error_again(failed: RunRow) -> None:
    assert await errors([failed], GONE, []) == ["its own", "is gone", "its own"]
    assert await errors([failed], GONE, DAMAGED, []) == ["its own", "is gone", "is damaged", "its own"]


async def test_what_is_read_after_trouble_is_what_counts(failed: RunRow) -> None:
    going_on = replace(failed, error=None)
    assert await errors([failed], GONE, [going_on], GONE, []) == ["its own", "is gone", None, "is gone", None]
    assert await errors(GONE, [failed]) == [None, "its own"]


async def test_who_waits_is_told_once_of_trouble_and_once_of_its_end(failed: RunRow) -> None:
    live, versions = Live({"run": Scripted([failed], GONE, GONE, [], [])}), list[int]()
    for _ in range(5):
        await live.read()
        versions.append(live.version)
    assert versions == [1, 2, 2, 3, 3]
