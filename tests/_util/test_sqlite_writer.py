"""The writer keeps steps whole and in order, lets many waiters share a transaction, and never dies on a row."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from flowevolve._util.errors import EngineError
from flowevolve._util.sqlite_writer import Writer

pytestmark = pytest.mark.anyio


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "x.sqlite", check_same_thread=False)) as connection:
        connection.execute("CREATE TABLE rows (value)")
        connection.commit()
        yield connection


def insert(database: sqlite3.Connection, rows: Sequence[object]) -> None:
    database.executemany("INSERT INTO rows VALUES (?)", [(value,) for value in rows])


class Held:
    """A write that waits until it is let go."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def __call__(self, database: sqlite3.Connection, rows: Sequence[object]) -> None:
        self.gate.wait()
        insert(database, rows)


def values(database: sqlite3.Connection) -> list[object]:
    return [value for (value,) in database.execute("SELECT value FROM rows ORDER BY rowid")]


async def test_what_is_put_between_two_awaits_is_one_transaction(database: sqlite3.Connection) -> None:
    transactions: list[Sequence[int]] = []
    held = Held()
    writer: Writer[int] = Writer(database, "test", held, transactions.append)

    async def steps(start: int) -> None:
        for step in range(start, start + 5):
            writer.put(2 * step)
            writer.put(2 * step + 1)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for start in range(0, 50, 5):
            tasks.start_soon(steps, start)
    held.gate.set()
    await writer.settled()
    writer.close()
    homes = {value: number for number, rows in enumerate(transactions) for value in rows}
    assert sorted(homes) == list(range(100))
    assert all(homes[2 * step] == homes[2 * step + 1] for step in range(50))


async def test_waiters_share_transactions_and_are_woken_together(
    database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactions: list[Sequence[int]] = []
    wakes = 0
    loop = asyncio.get_running_loop()
    wake = loop.call_soon_threadsafe

    def counted(*args: object, **kwargs: object) -> object:
        nonlocal wakes
        wakes += 1
        return wake(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)

    held = Held()
    writer: Writer[int] = Writer(database, "test", held, transactions.append)

    async def one(value: int) -> None:
        writer.put(value)
        if value == 199:
            held.gate.set()
        await writer.settled()

    async with anyio.create_task_group() as tasks:
        for value in range(200):
            tasks.start_soon(one, value)
    writer.close()
    assert values(database) == list(range(200))
    # The thread holds its first transaction open until all have put theirs; the rest is the second.
    assert len([rows for rows in transactions if rows]) <= 2
    assert wakes <= 2


async def test_settled_waits_for_what_was_put_before_it(database: sqlite3.Connection) -> None:
    held = Held()
    writer: Writer[int] = Writer(database, "test", held)
    done = False

    async def settle() -> None:
        nonlocal done
        await writer.settled()
        done = True

    writer.put(1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(settle)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert not done
        held.gate.set()
    assert values(database) == [1]
    await writer.settled()
    writer.close()
    await writer.settled()
    writer.put(2)
    with pytest.raises(EngineError, match="test: something was to be written after this was closed"):
        await writer.settled()


async def test_a_cancelled_waiter_leaves_the_writer_as_it_was(database: sqlite3.Connection) -> None:
    held = Held()
    writer: Writer[int] = Writer(database, "test", held)
    writer.put(1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.settled)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    held.gate.set()
    writer.put(2)
    await writer.settled()
    writer.close()
    assert values(database) == [1, 2]


def test_a_waiter_whose_loop_is_gone_harms_nobody(database: sqlite3.Connection) -> None:
    held = Held()
    writer: Writer[int] = Writer(database, "test", held)

    async def leave() -> None:
        writer.put(1)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await writer.settled()

    anyio.run(leave)
    held.gate.set()
    writer.put(2)
    writer.close()
    assert writer.failure is None
    assert values(database) == [1, 2]


@pytest.mark.parametrize("bad", [object(), 2**70, "\ud800"])
async def test_a_row_that_cannot_be_written_is_a_failure_not_a_dead_thread(
    bad: object, database: sqlite3.Connection
) -> None:
    writer: Writer[object] = Writer(database, "test", insert)
    writer.put("before")
    await writer.settled()
    writer.put("same step")
    writer.put(bad)
    await writer.settled()
    assert writer.failure is not None
    writer.put("after")
    await writer.settled()
    writer.close()
    assert values(database) == ["before"]


def test_rows_put_outside_a_loop_and_left_over_in_one_are_written(database: sqlite3.Connection) -> None:
    writer: Writer[int] = Writer(database, "test", insert)
    writer.put(1)

    async def put() -> None:
        writer.put(2)
        writer.close()

    anyio.run(put)
    writer.close()
    assert values(database) == [1, 2]
