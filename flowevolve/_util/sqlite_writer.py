"""Writing to SQLite off the event loop.

One thread writes the rows in the order in which they are put. The rows that are put in one turn of the event loop are
one step: they are handed to the thread together and written in one transaction. So whatever a task puts between two
awaits is in the file completely or not at all. A transaction holds many steps, because the thread waits a moment for
more, unless somebody waits for it. All who begin to wait in one turn of the loop wait for the same mark behind its
step.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from flowevolve._util.clock import running_loop
from flowevolve._util.errors import EngineError

T = TypeVar("T")

LINGER_SECONDS = 0.02
"""For how many seconds of real time the thread waits for more steps for a transaction, unless somebody waits for it."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """Marks the end of the steps in the queue that somebody waits for."""

    loop: asyncio.AbstractEventLoop
    passed: asyncio.Event = field(default_factory=asyncio.Event)


class Writer(Generic[T]):
    """Writes to a connection that nobody else uses, opened with ``check_same_thread=False``. `close` this first.

    ``write`` writes the rows of a transaction, in the thread. ``check`` is called there before each transaction, and
    ``done`` with the transaction's rows once it is committed or given up. After the first failure of ``write`` or
    ``check``, all further steps are given up.
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        name: str,
        write: Callable[[sqlite3.Connection, Sequence[T]], object],
        done: Callable[[Sequence[T]], None] = lambda rows: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.failure: Exception | None = None
        self._database = database
        self._write = write
        self._done = done
        self._check = check
        self._step: list[T] = []
        self._mark: _Mark | None = None
        """The mark that everybody waits for who waits for the present step."""
        self._line: SimpleQueue[list[T] | _Mark | threading.Event | None] = SimpleQueue()
        self._handed_over = 0
        self._ended = 0
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, row: T) -> None:
        """Add a row to the present step; never waits. Outside an event loop, the row is a step of its own."""
        self._step.append(row)
        if len(self._step) == 1:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                self.hand_over()
            else:
                loop.call_soon(self.hand_over)

    def hand_over(self) -> None:
        """End the present step, if anything was put, or somebody began to wait, since the last one."""
        if self._step:
            self._line.put(self._step)
            self._handed_over += 1
            self._step = []
        if self._mark is not None:
            self._line.put(self._mark)
            self._hurry.set()
            self._mark = None

    async def settled(self) -> None:
        """Return when everything that was put so far is committed or, if ``failure`` is set, given up.

        Raises:
            EngineError: if something was put after `close`.
        """
        if not self._is_behind():
            return
        loop = running_loop()
        if self._mark is None or self._mark.loop is not loop:
            self._check_alive()
            self._mark = _Mark(loop)
            loop.call_soon(self.hand_over)
        await self._mark.passed.wait()

    def flush(self) -> None:
        """As `settled`, but this blocks the event loop: for use where nothing else needs it meanwhile."""
        if not self._is_behind():
            return
        self._check_alive()
        self.hand_over()
        passed = threading.Event()
        self._line.put(passed)
        self._hurry.set()
        passed.wait()

    def _is_behind(self) -> bool:
        """Whether something that was put is not written yet."""
        return bool(self._step) or self._ended != self._handed_over

    def _check_alive(self) -> None:
        """Raise an error if the thread has ended. Checking takes a while, so this is done once a turn of the loop."""
        if not self._thread.is_alive():
            raise EngineError(f"{self._thread.name}: something was to be written after this was closed, and is lost")

    def close(self) -> None:
        """Return when everything is written or given up. Calling this twice does no harm."""
        self.hand_over()
        if self._thread.is_alive():
            self._line.put(None)
            self._hurry.set()
            self._thread.join()

    def _run(self) -> None:
        open_ended = True
        while open_ended:
            batch = self._next_batch()
            steps = [entry for entry in batch if isinstance(entry, list)]
            self._write_batch([row for step in steps for row in step])
            self._ended += len(steps)
            _wake([entry for entry in batch if isinstance(entry, _Mark)])
            for flushed in (entry for entry in batch if isinstance(entry, threading.Event)):
                flushed.set()
            open_ended = None not in batch

    def _next_batch(self) -> list[list[T] | _Mark | threading.Event | None]:
        """Wait until something is in the queue, then a moment more, and return all that is there by then."""
        batch = [self._line.get()]
        self._hurry.wait(LINGER_SECONDS)
        self._hurry.clear()  # before the queue is read: whoever adds to it afterwards sets it again
        with suppress(Empty):
            while True:
                batch.append(self._line.get_nowait())
        return batch

    def _write_batch(self, rows: Sequence[T]) -> None:
        if self.failure is None and rows:
            try:
                self._check()
                with self._database:
                    self._write(self._database, rows)
            except Exception as error:  # noqa: BLE001  kept for the loop: a dead thread would keep it waiting forever
                self.failure = error
        self._done(rows)


def _wake(marks: Sequence[_Mark]) -> None:
    def pass_all() -> None:
        for mark in marks:
            mark.passed.set()

    if marks:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            marks[0].loop.call_soon_threadsafe(pass_all)
