"""The live page of a run that asks for it, served by a process of its own, so that it takes no time from the run."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio

from flowevolve._util.clock import in_thread

ENDING_SECONDS = 5.0
"""The time that the page has, when the run has ended, to tell browsers of the run's last events."""
ANSWER = "the live page: "
"""What stands before the address in the line that ``flowevolve watch`` prints."""


class PageProcess:
    """A process that serves a page, from `start` to `end`. It also ends when this process is killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    async def start(self, directory: Path) -> str:
        """Serve the page of the run in a directory; returns its address or, in words, why there is none."""
        self._process = process = await in_thread(lambda: _started(directory))
        said = await in_thread(lambda: _first_line(process))
        return said.removeprefix(ANSWER) if said.startswith(ANSWER) else f"none: {said or 'it did not start'}"

    async def end(self) -> None:
        """End the process, if it was started, once browsers have got what there is."""
        process = self._process
        if process is not None:
            with anyio.CancelScope(shield=True):
                await in_thread(lambda: _let_go(process))


def _started(directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "flowevolve", "watch", str(directory), "--until-closed"]
    # In a session of its own, as Ctrl-C is for the run, which has work to finish.
    return subprocess.Popen(  # noqa: S603 - our own program
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):  # it has ended by itself
        process.stdin.close()
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
