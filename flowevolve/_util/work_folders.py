"""Temporary folders that are removed when their work ends or, if the process was killed, at the next start.

All of them are in the user's own folder below the temporary folder. A process that works in one holds a lock on it,
which the kernel releases however the process ends.
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

with suppress(ImportError):  # Windows has none, and nothing that uses such folders runs there
    import fcntl

_USER = os.getuid() if hasattr(os, "getuid") else 0  # Windows has none


def user_folder() -> Path:
    """The path of this user's folder below the temporary folder. `check_user_folder` creates it."""
    return Path(tempfile.gettempdir()) / f"flowevolve-{_USER}"


def check_user_folder(folder: Path) -> None:
    """Create the folder if it does not exist.

    Raises:
        InputError: if it can't be created, or does not belong to this user.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise unusable(folder, str(error)) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise unusable(folder, "it belongs to somebody else, or is no folder")


def unusable(path: Path, why: str) -> InputError:
    return InputError(f"{path} can't be used for locks and temporary folders: {why}. Set TMPDIR to a folder of yours")


@contextmanager
def work_folder(purpose: str) -> Iterator[Path]:
    """Create a folder that is removed when the block ends. Its name begins with ``purpose``.

    Raises:
        InputError: if the folder can't be created.
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
    """Remove the folders that killed processes left. No links are followed, and folders in use stay."""
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
        return  # it is in use
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
    """Remove a folder and all its contents, at any depth, even if the permission to do so was taken away."""
    for words in (["rm", "-rf"], ["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        if path.exists():
            subprocess.run([*words, "--", path], stderr=subprocess.DEVNULL, check=False)  # noqa: S603
