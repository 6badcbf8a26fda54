"""The lock that keeps a run directory to one process. The kernel releases it when the process ends in whatever way."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from flowevolve._util.errors import InputError

LOCK = "lock"


class Lock:
    """Holds ``folder/lock`` until `release`.

    Raises:
        InputError: if another process holds it, or the file can't be written.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK
        try:
            self._file = path.open("a+", encoding="ascii")
        except OSError as error:
            raise InputError(f"{path}: can't be written: {error}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise InputError(
                f"{folder}: process {holder} is at work in this run directory; wait until it has ended, or stop it"
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Give the lock back. Calling this twice does no harm."""
        self._file.close()


def is_held(folder: Path) -> bool:
    """Whether a process is at work in a run directory. Nothing is written."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is no such file, or it can't be read
        return False
    return False
