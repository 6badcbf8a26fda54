"""The lock that lets one process at a time use a run directory. The kernel releases it, however the process ends."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from flowevolve._util.errors import InputError
from flowevolve.journal.files import writing

try:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
except ImportError:
    from msvcrt import LK_NBLCK, locking  # type: ignore[attr-defined]  # Windows'

    def _hold(file: IO[str], *, shared: bool = False) -> None:  # Windows has no shared locks
        file.seek(_FAR)  # as others can't read the bytes that are locked
        locking(file.fileno(), LK_NBLCK, 1)
        file.seek(0)
else:

    def _hold(file: IO[str], *, shared: bool = False) -> None:
        flock(file, (LOCK_SH if shared else LOCK_EX) | LOCK_NB)


LOCK = "lock"
TRIES, PAUSE = 20, 0.005
"""How often `patient_lock` tries to take a lock that is held, and the seconds between two tries: perhaps only `is_held`
holds it for a moment.
"""
_FAR = 2**30
"""A place in the file beyond everything that is written to it."""


class HeldError(InputError):
    """Another process holds the lock."""


class Lock:
    """Holds ``folder/lock`` until `release`.

    Raises:
        HeldError: if another process holds it.
        InputError: if the file can't be written.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK
        with writing(path):
            self._file = path.open("a+", encoding="ascii")
        try:
            _hold(self._file)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise HeldError(
                f"{folder}: process {holder} is at work in this run directory; wait until it has ended, or stop it"
            ) from None
        try:
            with writing(path):
                self._file.truncate(0)
                os.write(self._file.fileno(), _this_process())  # leaves nothing that `close` would write
        except InputError:
            self._file.close()
            raise

    def release(self) -> None:
        """Give the lock back. Calling this twice does no harm."""
        if not self._file.closed:
            with suppress(OSError):  # if it can't be written, the process's name stays until another is written
                self._file.truncate(0)
            self._file.close()


def _this_process() -> bytes:
    """The process's id and, as several machines may share the disk, the name of this one."""
    return f"{os.getpid()} on {socket.gethostname()}".encode("ascii", "backslashreplace")


def patient_lock(folder: Path) -> Lock:
    """Take the `Lock`, trying again if somebody holds it for a moment, as `is_held` does. This may block for a tenth of
    a second, so it is not for the event loop.

    Raises:
        InputError: as `Lock` does.
    """
    for _ in range(TRIES):
        try:
            return Lock(folder)
        except HeldError:
            time.sleep(PAUSE)
    return Lock(folder)


def is_held(folder: Path) -> bool:
    """Whether a process is at work in a run directory. Nothing is written."""
    try:
        file = (folder / LOCK).open(encoding="ascii")
    except OSError:  # there is no such file, or it can't be read
        return False
    with file:
        try:
            _hold(file, shared=True)
        except OSError:
            return True
    return False
