"""The lock that keeps a run directory to one process. The kernel releases it when the process ends in whatever way."""

from __future__ import annotations

import os
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

    def _hold(file: IO[str], *, shared: bool = False) -> None:  # which there is not on Windows
        file.seek(_FAR)  # as nobody else can read what is locked
        locking(file.fileno(), LK_NBLCK, 1)
        file.seek(0)
else:

    def _hold(file: IO[str], *, shared: bool = False) -> None:
        flock(file, (LOCK_SH if shared else LOCK_EX) | LOCK_NB)


LOCK = "lock"
TRIES, PAUSE = 20, 0.005
"""How often a lock that is held is tried to take, and the seconds between two tries: `is_held` may just be looking."""
_FAR = 2**30
"""Behind all that is written in the file."""


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
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Give the lock back. Calling this twice does no harm."""
        if not self._file.closed:
            with suppress(OSError):  # where it can't be written, the number stays until somebody writes another
                self._file.truncate(0)
            self._file.close()


def patient_lock(folder: Path) -> Lock:
    """A `Lock`, also where somebody just looks whether it is held. This may block for a tenth of a second: it is not
    for the event loop.

    Raises:
        InputError: as a `Lock`.
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
