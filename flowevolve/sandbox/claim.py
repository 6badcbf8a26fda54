"""A core among processes: locks on files, which the kernel releases when their holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from flowevolve.errors import InputError

LOOK_SECONDS = 0.02
"""How often who waits looks again: no event tells that another process released a lock, but to a thread that could not
be told to leave.
"""


class Claim:
    """One process at a time has a core, until it closes its claim. Works for several claims of one process, too.

    Who waits stands in line, where there is room for one, and nobody else takes the core meanwhile: a process that
    takes it again and again waits for others, too.

    Raises:
        InputError: if ``folder``, where the files are, can't be used.
    """

    def __init__(self, folder: Path, core: int) -> None:
        self.core = core
        self.in_line = False
        """Whether it stands there."""
        _check(folder)
        self._line = _opened(folder / f"core-{core}.line")
        self._file = _opened(folder / f"core-{core}")

    def take(self) -> bool:
        """Whether it is ours now. It is not if somebody has it, or somebody else waits for it."""
        if not (self.in_line or _locked(self._line)):
            return False
        taken = _locked(self._file)
        if taken or not self.in_line:
            self._leave_line()
        return taken

    def line_up(self) -> bool:
        """Whether it stands in line now. It does not if somebody else does."""
        self.in_line = self.in_line or _locked(self._line)
        return self.in_line

    def _leave_line(self) -> None:
        fcntl.flock(self._line, fcntl.LOCK_UN)
        self.in_line = False

    def close(self) -> None:
        """Leave the core, or the line, to others."""
        for file in (self._file, self._line):
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


def wait_for_one(claims: Sequence[Claim], give_up: Event) -> Claim | None:
    """Block until one of them is ours, or ``give_up`` is set; meanwhile stand in one line, if there is room in any."""
    while True:
        for claim in claims:
            if claim.take():
                return claim
        if not any(claim.in_line for claim in claims):
            any(claim.line_up() for claim in claims)
        if give_up.wait(LOOK_SECONDS):
            return None
