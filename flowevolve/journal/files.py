"""Writes text files of a run, and turns errors of the file system into `InputError`."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal, TextIO

from flowevolve._util.errors import InputError, reason_of

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_SPACE_IN_SQLITE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
"""SQLite reports a disk that fills up by one of these codes."""

ELSEWHERE = "name another place with --out"
"""What to do if a run's directory can't be written to by a command that only reads the run."""

PART = ".part"
"""The ending of a file that is being written."""


def open_text(path: Path, mode: Literal["w", "a"]) -> TextIO:
    """Open a file for JSON. A lone surrogate, which UTF-8 can't encode, is written as its JSON escape."""
    return path.open(mode, encoding="utf-8", errors="backslashreplace")


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write a file whole or not at all, even if the machine loses power meanwhile."""
    draft = path.with_name(path.name + PART)
    with open_text(draft, "w") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())  # before the rename, which some file systems put on disk first
    draft.replace(path)


def put_on_disk(*paths: Path) -> None:
    """Return when these files, and what these directories list, would survive a loss of power."""
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except PermissionError:
            if path.is_dir():
                continue  # Windows can't open directories, and its file system keeps their entries safe anyway
            raise
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def how_to_mend(error: Exception) -> str:
    """What the user has to do, in the imperative, after something could not be written."""
    if isinstance(error, sqlite3.Error):
        code: int | None = getattr(error, "sqlite_errorcode", None)
        full = code in _NO_SPACE_IN_SQLITE
    else:
        full = isinstance(error, OSError) and error.errno in _NO_SPACE
    return "free some space" if full else "mend that"


def writing(path: Path, advice: str = "") -> AbstractContextManager[None]:
    """Raise an `InputError` that names the path, and says what to do, if writing fails inside the ``with``."""
    return _possible(path, "written", advice)


def looking(path: Path) -> AbstractContextManager[None]:
    """Raise an `InputError` that names the path if what is there can't be looked at inside the ``with``."""
    return _possible(path, "looked at")


@contextmanager
def _possible(path: Path, done: str, advice: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        more = f"; {advice}" if advice else ""
        raise InputError(f"{path} can't be {done}: {reason_of(error)}{more}") from error


def refuse_link(folder: Path) -> None:
    """Raise an `InputError` if the folder is a link: a run directory may come from somebody else."""
    with looking(folder):
        if folder.is_symlink():
            raise InputError(f"{folder} is a link to {folder.readlink()}; remove it, or name another folder with --out")
