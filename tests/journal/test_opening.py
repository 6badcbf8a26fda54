"""What is read of a journal is what was committed, whatever state a killed writer has left it in, and wherever it is."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from flowevolve._util.errors import InputError
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.journal.compact import compact
from flowevolve.journal.export import export
from flowevolve.journal.opening import DamagedError
from flowevolve.journal.reading import RecordedCall, RecordedRun
from flowevolve.journal.repair import repair
from flowevolve.journal.run_directory import RunDirectory, has_begun
from tests.support.depth import LONG, cuts
from tests.support.full_disk import full_disk
from tests.support.killed import as_ordinary_user, killed
from tests.support.some_events import some_event

Content = tuple[list[Event], list[RecordedCall]]


def call(number: int) -> CallRecord:
    text = "".join(chr(0x4E00 + (number * 7919 + place * place) % 20000) for place in range(2000))
    request = ChatRequest("m", (Message("user", f"{number} {text}"),))
    scope = CallScope("screen", f"0.0/e{number}", "c1", 2, 0)
    return CallRecord("task", scope, request, ChatReply(text[::-1], Usage(1, 2)), None, 1, 0.0, 0.5, 1.0)


def write(path: Path, calls: int = 30) -> None:
    """A run with a flow that has ended, so that compacting drops the texts of all calls."""
    with closing(RunDirectory(path, {})) as directory:
        directory.event(some_event(0, "flow.open", flow=0))
        for number in range(calls):
            directory.call(call(number))
        directory.event(some_event(1, "flow.close", flow=0))


def content(path: Path) -> Content:
    with RecordedRun(path) as recorded:
        recorded.check()
        return list(recorded.events()), list(recorded.calls())


def events_and_replies(path: Path) -> tuple[list[Event], list[str | None]]:
    events, calls = content(path)
    return events, [call.reply for call in calls]


def test_a_killed_compaction_shows_all_or_nothing_of_what_it_did(tmp_path: Path) -> None:
    write(tmp_path / "run")
    before = content(tmp_path / "run")
    without = [replace(each, messages=None, reply=None) for each in before[1]]
    hot = 0
    for steps in cuts(range(60), 2):
        path = tmp_path / f"killed-{steps}"
        shutil.copytree(tmp_path / "run", path)
        was_killed = killed(partial(compact, path), steps)
        hot += was_killed and (path / "journal.sqlite-journal").exists()
        events, calls = content(path)
        assert events == before[0]
        assert calls in ((before[1], without) if was_killed else (without,))
        assert compact(path).calls == (30 if calls == before[1] else 0)
        RunDirectory(path, {}, resume=True).close()
        assert content(path) == (before[0], without)
    assert hot > 0


def test_a_killed_writer_shows_a_beginning_of_what_it_wrote(tmp_path: Path) -> None:
    for steps in range(1, 80) if LONG else (3, 12, 40):
        path = tmp_path / f"killed-{steps}"
        assert killed(partial(write, path, 10**6), steps)
        events, calls = content(path) if has_begun_to_write(path) else ([], [])
        assert [event.seq for event in events] == [0][: len(events)]
        assert [(each.item, each.reply) for each in calls] == [
            (record.scope.item, record.reply.text) for record in map(call, range(len(calls))) if record.reply
        ]
        RunDirectory(path, {}, resume=bool(events)).close()


def has_begun_to_write(path: Path) -> bool:
    """Whether the tables are there; a kill before that leaves a run that never began."""
    try:
        RecordedRun(path).close()
    except InputError as error:
        if "never began" in str(error) or "holds no run" in str(error):
            return False
        raise
    return True


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    for file in path.iterdir():
        file.chmod(0o444)
    path.chmod(0o555)
    yield
    path.chmod(0o755)
    for file in path.iterdir():
        file.chmod(0o644)


def left_by_a_killed_writer(path: Path) -> Content:
    """A run with a log beside its journal; returns what is in both."""
    whole = path.with_name("whole")
    directory = RunDirectory(whole, {})
    directory.event(some_event(0, "flow.open", flow=0))
    directory.call(call(0))
    asyncio.run(directory.settled())
    shutil.copytree(whole, path)
    directory.close()
    assert (path / "journal.sqlite-wal").stat().st_size
    return content(whole)


def test_a_read_only_directory_is_read_where_that_is_safe(folder: Path) -> None:
    write(folder / "closed")
    closed = content(folder / "closed")
    killed_run = left_by_a_killed_writer(folder / "killed")

    def look() -> None:
        assert content(folder / "closed") == closed
        assert content(folder / "killed") == killed_run

    with read_only(folder / "closed"), read_only(folder / "killed"):
        as_ordinary_user(look)


def says(path: Path, words: str) -> Callable[[], None]:
    """Read a directory and see that it is refused with these words in one line."""

    def look() -> None:
        with pytest.raises(InputError, match=words) as caught:
            content(path)
        assert "\n" not in str(caught.value)

    return look


def test_a_read_only_directory_is_refused_where_only_writing_could_tell_what_is_in_it(folder: Path) -> None:
    killed_run = left_by_a_killed_writer(folder / "killed")
    (folder / "killed" / "journal.sqlite-shm").unlink()
    with read_only(folder / "killed"):
        as_ordinary_user(
            says(folder / "killed", "its log can only be read in a directory in which you can write. Copy the run")
        )
    assert content(folder / "killed") == killed_run

    write(folder / "compacting")
    before = events_and_replies(folder / "compacting")
    assert killed(partial(compact, folder / "compacting"), 35)
    assert (folder / "compacting" / "journal.sqlite-journal").exists()
    with read_only(folder / "compacting"):
        as_ordinary_user(
            says(
                folder / "compacting",
                "has left a change unfinished, and undoing it takes a directory in which you can write",
            )
        )
    assert events_and_replies(folder / "compacting") == before


def test_a_directory_that_can_not_be_looked_into_is_refused_in_one_line(folder: Path) -> None:
    closed = folder / "closed"
    write(closed / "run")
    closed.chmod(0)
    try:
        as_ordinary_user(says(closed / "run", re.escape(str(closed / "run"))))
    finally:
        closed.chmod(0o755)
    says(folder / ("x" * 300), "xxx can't be ")()


def test_a_planted_rollback_journal_deletes_no_file(tmp_path: Path) -> None:
    """SQLite deletes the file that the rollback journal of a transaction on several files names."""
    path, precious = tmp_path / "run", tmp_path / "precious"
    write(path)
    assert killed(partial(compact, path), 35)
    precious.write_text("x" * 100)
    name = bytes(precious)
    record = (2**30 // 4096 + 1).to_bytes(4, "big") + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big")
    with (path / "journal.sqlite-journal").open("ab") as planted:
        planted.write(record + bytes.fromhex("d9d505f920a163d7"))
    for read in (content, compact, repair, has_begun):
        with pytest.raises(InputError, match="would have another file deleted"):
            read(path)
    assert precious.exists()


def test_a_journal_that_was_left_in_wal_mode_is_read_only_while_nobody_writes(folder: Path) -> None:
    write(folder / "run")
    with closing(sqlite3.connect(folder / "run" / "journal.sqlite")) as database:
        database.execute("PRAGMA journal_mode=WAL")
    whole = content(folder / "run")
    for name in ("journal.sqlite-wal", "journal.sqlite-shm"):
        (folder / "run" / name).unlink(missing_ok=True)

    path = folder / "run"

    def look() -> None:
        assert content(path) == whole
        with RecordedRun(path) as recorded:
            if os.getuid() == 0:
                os.seteuid(0)
            path.chmod(0o755)
            (path / "journal.sqlite").chmod(0o644)
            with closing(sqlite3.connect(path / "journal.sqlite")) as writer:
                writer.execute("SELECT * FROM events").fetchone()
                with pytest.raises(InputError, match="another process began to write to this file while it was read"):
                    recorded.last_event()

    with read_only(path):
        as_ordinary_user(look)


def test_what_is_said_while_a_journal_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0))
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as other:
        other.execute("BEGIN EXCLUSIVE")
        says(tmp_path, "another process is rewriting this file")()


@pytest.mark.parametrize("read", [content, has_begun, export, partial(RunDirectory, config={})])
def test_a_log_that_is_missing_is_told_and_never_taken_for_a_run_that_never_began(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    left_by_a_killed_writer(tmp_path / "killed")
    for missing in (["journal.sqlite-wal"], ["journal.sqlite-wal", "journal.end"], ["journal.sqlite"]):
        path = tmp_path / "-".join(missing)
        shutil.copytree(tmp_path / "killed", path)
        for name in missing:
            (path / name).unlink()
        before = sorted(path.iterdir())
        is_gone = "journal.sqlite" in missing
        advice = "nothing can be saved of this one" if is_gone else "to save what was .*, call flowevolve repair"
        with pytest.raises(DamagedError, match=rf"is damaged: .* use that; {advice}") as caught:
            read(path)
        assert "\n" not in str(caught.value)
        assert set(before) <= set(path.iterdir())


def test_a_full_disk_is_not_taken_for_damage(tmp_path: Path) -> None:
    path = tmp_path / "killed"
    left_by_a_killed_writer(path)
    (path / "journal.sqlite-shm").unlink(missing_ok=True)
    with full_disk(), pytest.raises(InputError, match=r"journal\.sqlite can't be read: .* Free some space") as error:
        content(path)
    assert not isinstance(error.value, DamagedError)
    assert content(path)[0]


def test_a_file_that_is_no_journal_is_not_to_be_repaired(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_bytes(b"These are my notes.")
    with pytest.raises(DamagedError, match=r"file is not a database\. .* use that; nothing can be saved of this one$"):
        content(tmp_path)


def test_an_emptied_journal_is_no_run_that_never_began(tmp_path: Path) -> None:
    write(tmp_path / "run")
    RunDirectory(tmp_path / "never", {}).close()
    for name in ("run", "never"):
        (tmp_path / name / "journal.sqlite").write_bytes(b"")
    with pytest.raises(DamagedError, match="it is empty, but 2 events and 30 calls had been written"):
        has_begun(tmp_path / "run")
    assert not has_begun(tmp_path / "never")


def test_files_of_two_runs_are_not_taken_for_one(tmp_path: Path) -> None:
    for name in ("run", "other"):
        write(tmp_path / name)
    shutil.copy(tmp_path / "other" / "journal.sqlite", tmp_path / "run")
    with pytest.raises(DamagedError, match=r"it belongs to another run than the file journal\.end"):
        content(tmp_path / "run")
