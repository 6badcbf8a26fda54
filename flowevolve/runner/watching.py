"""The live page of a run that asks for it, served by a process of its own, so that it takes no time from the run.

Acts that users post in the page come through a pipe and are applied to the run; `flowevolve.page.live.run_pipe` is the
other end. Whatever that process does or writes, the run goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from flowevolve._util.clock import in_thread, in_thread_until, is_virtual
from flowevolve._util.console import shown
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.logger import logger
from flowevolve.core.acts import read_act
from flowevolve.engine.engine import Engine

STARTING_SECONDS = 60.0
"""The time that the page has to report its address."""
ENDING_SECONDS = 5.0
"""The time that the page has, when the run has ended, to tell browsers of the run's last events."""
ANSWER = "the live page: "
"""The text before the address in the line that ``flowevolve watch`` prints."""
LONGEST_LINE = 8 * 1024 * 1024
"""The most bytes of a line that the page writes: enough for an act of the largest size, escaped."""
MOST_UNDER_WAY = 16
"""The most acts that are carried out at the same time. Others wait in the pipe."""
LONGEST_SAID = 300
"""The most characters that are logged of a line that the page should not have written."""


class PageProcess:
    """A process that serves a page, from `start` to `end`. It also ends when this process is killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._engine: Engine | None = None
        self._begun = False
        self._writing = anyio.Lock()

    async def start(self, directory: Path) -> str:
        """Serve the page of the run in a directory. Returns its address or, in words, why there is none."""
        self._process = process = await in_thread(lambda: _started(directory))
        return await in_thread_until(process.kill, _address, process)

    async def side_task(self, engine: Engine) -> None:
        """Let the page steer this run, until cancelled."""
        self._engine, self._begun = engine, True
        try:
            await anyio.sleep_forever()
        finally:
            self._engine = None

    async def listen(self) -> None:
        """Do what the page asks for, and answer it, until its process ends."""
        process, room = self._process, anyio.Semaphore(MOST_UNDER_WAY)
        if process is None:
            return
        # Only the thread waits for a process that hangs, and it ends with the process.
        read_line = partial(anyio.to_thread.run_sync, _next_line, process, abandon_on_cancel=True)
        limiter = anyio.CapacityLimiter(1)
        async with anyio.create_task_group() as tasks:
            while line := await read_line(limiter=limiter):
                await room.acquire()
                tasks.start_soon(self._take, process, line, room)

    async def _take(self, process: subprocess.Popen[bytes], line: bytes, room: anyio.Semaphore) -> None:
        try:
            match _read(line):
                case {"id": int(number), "by": str(by), "act": act}:
                    answer = json.dumps({"id": number, "refused": await self._act(act, by)}) + "\n"
                    async with self._writing:
                        write = partial(_write, process, answer.encode())
                        await anyio.to_thread.run_sync(write, abandon_on_cancel=True)
                case _:
                    logger().warning("page.said", said=shown(line.decode(errors="replace"))[:LONGEST_SAID].strip())
        finally:
            room.release()

    async def _act(self, act: JSON, by: str) -> str | None:
        """Do an act; returns why not, or None if it was done."""
        try:
            wanted = read_act(act)
            if is_virtual():
                return "A run on the virtual clock can't be steered, because its hours pass in a moment."
            if self._engine is None:
                if not self._begun:
                    return "The run has not begun yet; try again in a moment."
                return "The run is ending, so it can't be steered any more."
            await self._engine.act(wanted, by)
        except InputError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - such as one of the algorithm's, which must not end the run
            logger().error("page.act", act=act, by=by, exc_info=True)
            return f"That failed: {type(error).__name__}: {error}"
        return None

    async def end(self) -> None:
        """End the process, if it was started, once browsers have received everything."""
        process = self._process
        if process is not None:
            with anyio.CancelScope(shield=True):
                await in_thread(lambda: _let_go(process))


def _started(directory: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "flowevolve", "watch", str(directory), "--until-closed"]
    # In a session of its own, as Ctrl-C is meant for the run, which has work to finish.
    return subprocess.Popen(  # noqa: S603 - our own program
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _address(process: subprocess.Popen[bytes]) -> str:
    """The address that the process reports or, in words, why there is none: the last line that it wrote before it
    ended.

    The time limit is in real time, on every clock: the process is killed, which ends its output.
    """
    late, why = threading.Event(), ""

    def give_up() -> None:
        late.set()
        process.kill()

    limit = threading.Timer(STARTING_SECONDS, give_up)
    limit.start()
    try:
        while line := _next_line(process):
            text = shown(line.decode(errors="replace").strip())
            if text.startswith(ANSWER):
                return text.removeprefix(ANSWER)
            why = text[:LONGEST_SAID] or why
    finally:
        limit.cancel()
    if late.is_set():
        return f"none, as its server did not start within {STARTING_SECONDS:.0f} s"
    return f"none, as its server did not start{f': {why}' if why else ''}"


def _next_line(process: subprocess.Popen[bytes]) -> bytes:
    """The next line, or part of one that is too long; empty if the process has ended."""
    assert process.stdout is not None
    return process.stdout.readline(LONGEST_LINE)


def _read(line: bytes) -> JSON:
    """The JSON in a line; None if there is none."""
    with suppress(ValueError, RecursionError):
        read: JSON = json.loads(line)
        return read
    return None


def _write(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Write a line without the pipe's buffer, so that `_let_go` need not wait for it to be flushed."""
    assert process.stdin is not None
    with suppress(OSError, ValueError):  # the process has ended, or is being let go
        while line:
            line = line[os.write(process.stdin.fileno(), line) :]


def _let_go(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):  # it has ended already
        process.stdin.close()
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
