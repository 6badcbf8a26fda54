"""The process of a system and all that it starts: they share a session, by which they are counted and killed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_SESSION, _CPU = 3, slice(11, 15)
"""Fields of ``/proc/PID/stat`` after the name: the session; user and system time, its own and that of its children."""


class Session:
    """A command, and every process that it has started and that has not left its session."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.has_ended = False
        """Whether the command has ended by itself."""

    def wait(self, seconds: float) -> int | None:
        """The exit code of the command if it ends within this many seconds, else None."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self.has_ended = True
        return code

    def cpu_seconds(self) -> float:
        """The CPU seconds of the processes that still exist, and of those that they have waited for."""
        return sum(sum(map(int, fields[_CPU])) for _, fields in self._members()) / _TICK

    def others(self) -> int:
        """How many processes there are besides the command's own."""
        return sum(1 for _ in self._members()) - (not self.has_ended)

    def kill(self) -> None:
        """Kill all of them at once, as when a machine is switched off, including those that they start meanwhile."""
        while members := [pid for pid, _ in self._members()]:
            for pid in members:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def _members(self) -> Iterator[tuple[int, list[str]]]:
        """The processes of the session that have not ended, each with the fields that follow its name."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # the process has ended meanwhile
            if int(fields[_SESSION]) == self._process.pid and fields[0] != "Z":
                yield int(folder.name), fields


@contextmanager
def session(command: Sequence[str], environment: Mapping[str, str], folder: Path, output: Path) -> Iterator[Session]:
    """Run a command in a session of its own. Whatever is left of it at the end of the block is killed."""
    with output.open("ab") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, cwd=folder, stdout=log, stderr=log, start_new_session=True
        )
    started = Session(process)
    try:
        yield started
    finally:
        started.kill()
