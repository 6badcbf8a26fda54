"""The rows of runs that are watched: how many are kept, and what is said of a run that can't be read for a while."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import anyio
import pytest

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.acts import Act
from flowevolve.page.live import live
from flowevolve.page.live.live import Live
from flowevolve.page.reading.source import RunSource
from flowevolve.page.tables.columns import in_columns
from flowevolve.page.tables.memory import Tables
from flowevolve.page.tables.row import Row
from flowevolve.page.tables.run import LogRow, RunRow
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


def line(number: int) -> LogRow:
    return LogRow(number, 0.0, "flow.opened", None, None, None, "", "debug")


async def test_of_a_long_log_the_end_is_kept_and_what_is_gone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the page of a run of days would take more memory all the time."""
    monkeypatch.setattr(live, "MOST_ROWS", 100)
    watched = Live({"run": Scripted(*([line(number)] for number in range(1000)))})
    run = watched.runs["run"]
    assert (await run.snapshot())["left_out"] == []
    for _ in range(1000):
        await watched.read()
    kept = [row.seq for row in run.tables.of(LogRow)]
    assert kept == list(range(1000 - len(kept), 1000))
    assert 100 <= len(kept) < 110
    said = f"The first {1000 - len(kept)} lines of the log are not on this page; flowevolve report has them."
    assert (await run.snapshot())["left_out"] == [said]
    assert run.since(997) == {"log": [line(997), line(998), line(999)]}
    assert run.since(0) == {"log": [line(number) for number in kept]}


async def test_others_have_their_turn_while_all_rows_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the moment at which it was asked for them."""
    go_on, put_together = Event(), in_columns

    def slowly(tables: Tables) -> dict[str, JSON]:
        assert go_on.wait(timeout=30)
        return put_together(tables)

    monkeypatch.setattr(live, "in_columns", slowly)
    watched = Live({"run": Scripted([line(0)], [line(1)])})
    await watched.read()
    found: list[dict[str, JSON]] = []

    async def ask() -> None:
        found.append(await watched.runs["run"].snapshot())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        await watched.read()
        go_on.set()
    assert found[0]["tables"] == put_together(Tables([line(0)]))
