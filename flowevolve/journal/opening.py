"""Opens a journal for reading, so that a reader sees what was committed, in whatever state a writer has left the files.

A journal that nobody writes to is one plain file. One that is being written, or whose writer was killed, has a
write-ahead log (``-wal``) beside it. One whose compaction was killed has a rollback journal (``-journal``). Without
these files the journal can't be read correctly. docs/reference/run-directory.md says which of them can be read where
nothing may be written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from flowevolve._util.errors import InputError
from flowevolve._util.words import counted
from flowevolve.journal.end_mark import END_MARK, EndMark, read_end_mark
from flowevolve.journal.files import looking
from flowevolve.journal.lock import is_held

JOURNAL = "journal.sqlite"
WAL, ROLLBACK = f"{JOURNAL}-wal", f"{JOURNAL}-journal"
SALVAGED = "journal.salvaged"
"""The new journal that a repair has written, until it takes the place of the damaged one."""
JOURNAL_FILES = (JOURNAL, WAL, f"{JOURNAL}-shm", ROLLBACK, END_MARK)
"""All files that a journal may consist of."""

_DAMAGE = {None, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR}
"""The codes of SQLite's errors that are due to the content of a file. None stands for an error of Python's own, which
is raised for bytes that are not valid text.
"""
_WAIT: Mapping[int | None, str] = {
    sqlite3.SQLITE_BUSY: (
        "another process is rewriting this file, as flowevolve compact does; try again when that has ended"
    ),
    sqlite3.SQLITE_READONLY: "a process that wrote to this file was killed while it was read; try again",
}
_NO_SPACE_FOR_SHM = {sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP}
"""The codes of SQLite's errors if the small file that it needs to read a log can't be made."""
_HEADER = b"SQLite format 3\0"
"""The first bytes of every SQLite file."""
_WAL_VERSION_AT, _WAL_VERSION = 18, 2
"""The offset of the byte in SQLite's header that says how a file is written, and its value for a file with a
write-ahead log.
"""
_NAMES_A_FILE = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""The last bytes of the rollback journal of a transaction on several files. SQLite deletes the file that such a journal
names.
"""
_ENDS = "SELECT (SELECT max(seq) FROM events), (SELECT max(id) FROM calls)"
_SCHEMAS_WITHOUT_MARKS = frozenset("12345")
_META = "SELECT key, value FROM meta WHERE key IN ('schema', 'run')"


class DamagedError(InputError):
    """A journal is damaged: ``what`` says how."""

    def __init__(self, folder: Path, what: str) -> None:
        self.folder = folder
        self.what = what
        rest = (
            f"to save what was recorded before the damage, call flowevolve repair {folder}"
            if _may_be_salvaged(folder)
            else "nothing can be saved of this one"
        )
        super().__init__(
            f"{folder / JOURNAL} is damaged: {what}. If you have a whole copy of the directory, use that; {rest}"
        )


def _may_be_salvaged(folder: Path) -> bool:
    """Whether there is an SQLite file, a log that may contain one, or a new journal that a killed repair has saved."""
    if (folder / SALVAGED).is_file():
        return True
    try:
        with (folder / JOURNAL).open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER or (folder / WAL).is_file()
    except OSError:
        return False


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Raise a `DamagedError` or an `InputError` where SQLite can't read the journal inside the ``with``."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) in _NO_SPACE_FOR_SHM:
            raise InputError(
                f"{folder / JOURNAL} can't be read: its log needs a small file beside it, which can't be made here. "
                "Free some space, and try again"
            ) from error
        if _kind(error) in _DAMAGE:
            raise DamagedError(folder, in_words(error)) from error
        why = _WAIT.get(_kind(error), f"this can't be read: {error}")
        raise InputError(f"{folder / JOURNAL}: {why}") from error


class OpenedJournal:
    """The journal of a run directory, opened for reading. `close` it.

    Nothing is written, with one exception: the unfinished transaction of a killed compaction is rolled back.

    Raises:
        DamagedError: if it ends before its end mark, or can't be read.
        InputError: if there is none, or it can't be read in this place.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        mark = read_end_mark(folder)  # before the journal, to which a running run adds meanwhile
        with looking(folder):
            _look_for_it(folder, mark)
            self._wants_log = _wants_log(folder / JOURNAL)
            self.database, self._unchanged = _open(folder)
        try:
            if mark is not None:
                self._compare(mark)
        except BaseException:
            self.database.close()
            raise

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a statement finds.

        Raises:
            DamagedError: if it can't be read.
            InputError: if somebody has begun to write to a journal that can be read only while nobody does.
        """
        with reading(self._folder):
            found = self.database.execute(statement, values).fetchall()
        if self._unchanged is not None and self._unchanged != self._state_now():
            raise InputError(
                f"{self._folder / JOURNAL}: another process began to write to this file while it was read. In a "
                "directory in which you can't write, it can only be read while nobody writes to it: wait until the "
                "run has ended, or copy the directory to a place where you can write"
            )
        return found

    def close(self) -> None:
        self.database.close()

    def _state_now(self) -> object:
        with looking(self._folder):
            return _state(self._folder)

    def _compare(self, mark: EndMark) -> None:
        """Check that the journal belongs to the run of its end mark and reaches at least as far as that."""
        with reading(self._folder):
            if self.database.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                if mark.event >= 0 or mark.call > 0:
                    raise DamagedError(
                        self._folder, f"it is empty, but {_extent(mark.event, mark.call)} had been written"
                    )
                return
            meta = dict(self.database.execute(_META))
            event, call = self.database.execute(_ENDS).fetchone()
        if meta.keys() != {"schema", "run"} or meta["schema"] in _SCHEMAS_WITHOUT_MARKS:
            raise DamagedError(self._folder, "its table meta is incomplete")
        if meta["run"] != mark.run:
            raise DamagedError(self._folder, f"it belongs to another run than the file {END_MARK} beside it")
        event, call = -1 if event is None else event, call or 0
        if event < mark.event or call < mark.call:
            log = (
                f"; its log {WAL} is missing, empty or damaged, or was copied at another time"
                if self._wants_log
                else ""
            )
            raise DamagedError(
                self._folder,
                f"it ends after {_extent(event, call)}, but {_extent(mark.event, mark.call)} had been written{log}",
            )


def _extent(event: int, call: int) -> str:
    return f"{counted(event + 1, 'event')} and {counted(call, 'call')}"


def _look_for_it(folder: Path, mark: EndMark | None) -> None:
    """Check that there is a journal and, if there is no end mark to tell, that its log is not missing."""
    file = folder / JOURNAL
    if not folder.is_dir():
        raise InputError(f"{folder}: no such run directory")
    if (folder / SALVAGED).exists():
        raise DamagedError(folder, "a repair of it was cut off, and another one will finish that")
    if not file.is_file():
        left = [name for name in (END_MARK, WAL) if (folder / name).is_file()]
        if left:
            raise DamagedError(folder, f"the file is gone, but {left[0]} is still there")
        if runs := sorted(found.parent for found in folder.glob(f"*/{JOURNAL}")):
            raise InputError(
                f"{folder} is not a run directory, but it contains some; name one of them, such as {runs[0]}"
            )
        raise InputError(f"{folder} holds no run, as there is no {JOURNAL} in it")
    if mark is None and not (folder / WAL).exists() and _wants_log(file):
        raise DamagedError(
            folder, f"its log {WAL}, which has what was written last, is missing; copy it together with the journal"
        )


def _wants_log(file: Path) -> bool:
    """Whether a file was left by a writer that did not close it."""
    with suppress(OSError), file.open("rb") as opened:
        return opened.read(_WAL_VERSION_AT + 1)[_WAL_VERSION_AT:] == bytes([_WAL_VERSION])
    return False


def _open(folder: Path) -> tuple[sqlite3.Connection, object]:
    """The opened journal; and, if it can be read only while nobody writes to it, a state that must not change, else
    None.
    """
    file = folder / JOURNAL
    try:
        return _connect(file, "mode=ro"), None
    except sqlite3.Error as error:
        if _kind(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            with reading(folder):
                raise
    if (folder / ROLLBACK).exists():
        _roll_back(file)
        with reading(folder):
            return _connect(file, "mode=ro"), None
    if (folder / WAL).exists() or is_held(folder):
        _refuse(file, "its log can only be read in a directory in which you can write")
    unchanged = _state(folder)
    with reading(folder):
        return _connect(file, "immutable=1"), unchanged


def _roll_back(file: Path) -> None:
    """Undo the transaction that a killed process left open. SQLite does so on opening a file that it may write to."""
    try:
        if file.with_name(ROLLBACK).read_bytes().endswith(_NAMES_A_FILE):
            raise InputError(
                f"{file}: {ROLLBACK}, beside it, would have another file deleted, and flowevolve writes no such file; "
                "don't use this directory unless you know where it is from"
            )
        _connect(file, "mode=rw").close()
    except (sqlite3.Error, OSError):
        _refuse(
            file,
            "a killed process has left a change unfinished, and undoing it takes a directory in which you can write",
        )


def _refuse(file: Path, why: str) -> NoReturn:
    raise InputError(
        f"{file} can't be read here: {why}. Copy the run directory, with all its files, to a place where you can write"
    )


def _state(folder: Path) -> object:
    """A value that changes as soon as somebody begins to write to the journal."""
    status = (folder / JOURNAL).stat()
    logs = [(folder / name).exists() for name in (WAL, ROLLBACK)]
    return status.st_mtime_ns, status.st_size, status.st_ino, logs


def open_for_recovery(file: Path) -> sqlite3.Connection:
    """Open a copy of a journal together with its logs, as far as SQLite can make sense of them.

    Raises:
        sqlite3.Error: if it can make no sense of the file at all.
    """
    return _connect(file, "mode=rw", "PRAGMA writable_schema=ON")  # then it also reads a file whose end is missing


def _connect(file: Path, how: str, first: str = "") -> sqlite3.Connection:
    database = sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True, check_same_thread=False)
    try:
        database.executescript(first)
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def in_words(error: sqlite3.Error) -> str:
    """SQLite's error message, without the text that it may quote."""
    return str(error).partition(" with text")[0]


def _kind(error: sqlite3.Error) -> int | None:
    """The primary code of an error; None if it is Python's own."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
