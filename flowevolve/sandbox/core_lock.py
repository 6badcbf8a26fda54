"""A core among processes: locks on files, which the kernel releases when their holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from flowevolve.errors import InputError

POLL_SECONDS = 0.02
"""How often who waits looks again: no event tells that another process released a lock, but to a thread that could not
be told to leave.
"""


class CoreLock:
    """One process at a time has a core, until it closes its lock. Works for several locks of one process, too.

    Who waits stands in line, where there is room for one, and nobody else takes the core meanwhile: a process that
    takes it again and again waits for others, too.

    Raises:
        InputError: if ``folder``, where the files are, can't be used.
    """

    def __init__(self, folder: Path, core: int) -> None:
        self.core = core
        self.queued = False
        """Whether it stands there."""
        _check(folder)
        self._queue = _opened(folder / f"core-{core}.line")
        self._file = _opened(folder / f"core-{core}")

    def try_acquire(self) -> bool:
        """Whether it is ours now. It is not if somebody has it, or somebody else waits for it."""
        if not (self.queued or _locked(self._queue)):
            return False
        taken = _locked(self._file)
        if taken or not self.queued:
            self._leave_queue()
        return taken

    def join_queue(self) -> bool:
        """Whether it stands in line now. It does not if somebody else does."""
        self.queued = self.queued or _locked(self._queue)
        return self.queued

    def _leave_queue(self) -> None:
        fcntl.flock(self._queue, fcntl.LOCK_UN)
        self.queued = False

    def close(self) -> None:
        """Leave the core, or the line, to others."""
        for file in (self._file, self._queue):
            fcntl.flock(file, fcntl.LOCK_UN)  # closing would do only if no child had a copy
            os.close(file)


def _check(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise _unusable(folder, str(error)) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise _unusable(folder, "belongs to somebody else, or is no folder")


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(path, str(error)) from error


def _unusable(path: Path, why: str) -> InputError:
    return InputError(f"sandbox: no locks for measurements in {path}: {why}; let TMPDIR name a folder of yours")


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def acquire_any(locks: Sequence[CoreLock], give_up: Event) -> CoreLock | None:
    """Block until one of them is ours, or ``give_up`` is set; meanwhile stand in one line, if there is room in any."""
    while True:
        for lock in locks:
            if lock.try_acquire():
                return lock
        if not any(lock.queued for lock in locks):
            any(lock.join_queue() for lock in locks)
        if give_up.wait(POLL_SECONDS):
            return None
