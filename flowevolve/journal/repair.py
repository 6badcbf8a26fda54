"""Repairs a run directory: replaces its damaged journal with a new one that holds what can be trusted.

Events, calls and payloads belong together. So the journal is cut where the first event or call is damaged or missing,
and both end there (`flowevolve.journal.examination`). If only a text is damaged, the calls that refer to it lose their
messages and nothing else. If only a payload is damaged, its item is lost: a resume discards it. If a repair is killed,
the next one finishes it.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from flowevolve._util.errors import InputError, StorageError
from flowevolve.journal.end_mark import END_MARK, EndMark, EndMarkFile, read_end_mark
from flowevolve.journal.files import PART, looking, put_on_disk, writing
from flowevolve.journal.lock import patient_lock
from flowevolve.journal.opening import JOURNAL, JOURNAL_FILES, SALVAGED, DamagedError
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RESULT
from flowevolve.journal.salvage import Salvaged, Source, opened_sources, write_sound

KEPT = "damaged"
"""The folder in a run directory that the damaged files are kept in."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was wrong with a journal, how much of it was saved, up to which second of the run, and what is gone.

    ``without_messages`` is the number of calls that lost their messages, ``payloads`` that of items whose payload
    is lost, and ``kept`` the folder with the damaged files.
    """

    damage: str
    events: int
    calls: int
    seconds: float
    gone_events: int
    gone_calls: int
    without_messages: int
    payloads: int
    kept: Path


def repair(path: Path) -> Repaired | None:
    """Replace a run's damaged journal with what can be trusted of it, and keep the damaged files in a folder beside it.

    Returns None if nothing is wrong with the journal, which is then left as it is.

    Raises:
        InputError: if there is no run, a process is at work in it, nothing can be saved, or nothing can be written.
        StorageError: if the disk has no room for a second copy of the journal.
    """
    with looking(path):
        if not path.is_dir():
            raise InputError(f"{path}: no such run directory")
        if not any((path / name).is_file() for name in (*JOURNAL_FILES, SALVAGED)):
            raise InputError(f"{path} holds no run, as there is no {JOURNAL} in it")
    lock = patient_lock(path)
    try:
        with writing(path):
            if (path / SALVAGED).exists():
                _put_in_place(path)
            damage = find_damage(path)
            if damage is None:
                return None
            with tempfile.TemporaryDirectory(dir=path, prefix="repair-") as scratch:
                return _repair(path, damage, Path(scratch))
    finally:
        lock.release()


def find_damage(path: Path) -> str | None:
    """What is wrong with the journal of a run directory, in words; None if nothing is. An event without the fields of
    its kind counts as damage, even if it is as it was written: nothing can follow the run beyond it.

    Raises:
        InputError: if there is no run, or it can't be read in this place.
    """
    try:
        with RecordedRun(path) as recorded:
            recorded.check(fields=True)
    except DamagedError as error:
        return error.what
    return None


def _repair(path: Path, damage: str, scratch: Path) -> Repaired:
    mark, draft = read_end_mark(path), path / (SALVAGED + PART)
    draft.unlink(missing_ok=True)
    with opened_sources(path, scratch, mark) as sources:
        try:
            salvaged = write_sound(sources[0], draft) if sources else None
        except sqlite3.Error as error:
            draft.unlink(missing_ok=True)
            raise StorageError(f"{draft} can't be written: {error}. All files are left as they are") from error
        if salvaged is None or not salvaged.begun:
            draft.unlink(missing_ok=True)
            raise InputError(
                f"{path / JOURNAL}: nothing can be saved, as there is nothing before the damage: {damage}. All "
                "files are left as they are. Use a copy of the directory, or start a new run in another one"
            )
        gone, lost = _gone(salvaged, sources, mark), len(sources[0].findings.lost_payloads)
    kept = _keep(path)
    put_on_disk(draft)
    if gone != (0, 0):
        (path / RESULT).unlink(missing_ok=True)  # it reports what is gone; a copy is with the files that are kept
    draft.replace(path / SALVAGED)
    _put_in_place(path)
    with closing(EndMarkFile(path / END_MARK, salvaged.mark)):
        put_on_disk(path)
    events, calls = salvaged.mark.event + 1, salvaged.mark.call
    return Repaired(damage, events, calls, salvaged.seconds, *gone, salvaged.without_messages, lost, kept)


def _gone(salvaged: Salvaged, sources: list[Source], mark: EndMark | None) -> tuple[int, int]:
    """How many events and calls there were after what was saved, as far as can be told."""
    ends = [source.findings.ends for source in sources] + ([] if mark is None else [(mark.event, mark.call)])
    return (
        max(event for event, _ in ends) - salvaged.mark.event,
        max(call for _, call in ends) - salvaged.mark.call,
    )


def _keep(path: Path) -> Path:
    """Copy the files of a damaged journal, and the result, into a folder of their own."""
    names = (KEPT, *(f"{KEPT}-{number}" for number in range(2, 1000)))
    kept = next(path / name for name in names if not (path / name).exists())
    draft = path / (KEPT + PART)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    for name in (*JOURNAL_FILES, RESULT):
        if (path / name).is_file():
            shutil.copy2(path / name, draft)
    put_on_disk(*draft.iterdir(), draft)
    draft.rename(kept)
    put_on_disk(path)
    return kept


def _put_in_place(path: Path) -> None:
    """Put the new journal in place of the damaged one. The logs of the damaged one are removed first, because SQLite
    would take them for those of the new one.
    """
    for name in JOURNAL_FILES[1:]:
        (path / name).unlink(missing_ok=True)
    put_on_disk(path)
    (path / SALVAGED).replace(path / JOURNAL)
    put_on_disk(path)
