"""Temporary folders that are gone at the end of their work, or at the next start where that end was a kill.

All are in one folder of the user's own below the temporary folder. Who works in one holds a lock on it, which the
kernel releases however its holder ends.
"""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flowevolve._util.errors import InputError

with suppress(ImportError):  # Windows has none, and nothing that works in such folders runs there
    import fcntl

_USER = os.getuid() if hasattr(os, "getuid") else 0  # Windows has none


def user_folder() -> Path:
    """The path of this user's folder below the temporary folder, which `check_user_folder` makes."""
    return Path(tempfile.gettempdir()) / f"flowevolve-{_USER}"


def check_user_folder(folder: Path) -> None:
    """Make the folder if there is none.

    Raises:
        InputError: if it can't be made, or is not this user's own.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise unusable(folder, str(error)) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise unusable(folder, "belongs to somebody else, or is no folder")


def unusable(path: Path, why: str) -> InputError:
    return InputError(f"{path}: {why}; let TMPDIR name a folder of yours, where locks and folders for work can be")


@contextmanager
def work_folder(purpose: str) -> Iterator[Path]:
    """A new folder, which is removed when the block ends. ``purpose``: the beginning of its name.

    Raises:
        InputError: if there can be none.
    """
    parent = user_folder()
    check_user_folder(parent)
    path, lock = _made(parent, purpose)
    try:
        yield path
    finally:
        _remove(path)
        os.close(lock)


def sweep() -> None:
    """Remove the folders that killed processes left. No link is followed, and what somebody works in stays."""
    with suppress(OSError), os.scandir(user_folder()) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _remove_if_left(Path(entry.path))


def _remove_if_left(path: Path) -> None:
    try:
        lock = _opened(path)
    except OSError:
        return
    try:
        if os.fstat(lock).st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path)
    except BlockingIOError:
        return  # somebody works in it
    finally:
        os.close(lock)


def _made(parent: Path, purpose: str) -> tuple[Path, int]:
    """A new folder and the lock on it."""
    while True:
        try:
            path = Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=parent))
        except OSError as error:
            raise unusable(parent, str(error)) from error
        with suppress(FileNotFoundError):  # another process swept it before it was locked
            lock = _opened(path)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return path, lock
            os.close(lock)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _remove(path: Path) -> None:
    """Remove a folder with all that is in it, of any depth, also where somebody took the right to do so away."""
    for words in (["rm", "-rf"], ["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        if path.exists():
            subprocess.run([*words, "--", path], stderr=subprocess.DEVNULL, check=False)  # noqa: S603
