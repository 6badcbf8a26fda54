"""A run directory is never written over, belongs to one process at a time, and can be gone on with."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from flowevolve._util import clock
from flowevolve._util.errors import InputError, StorageError
from flowevolve.core.events import Event
from flowevolve.journal.journal import Sync
from flowevolve.journal.reading import RecordedRun
from flowevolve.journal.run_directory import RunDirectory, read_result
from tests.support.killed import die, dies
from tests.support.some_events import some_event

ROOT = Path(__file__).parents[2]


def test_a_run_directory_is_never_written_over(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run", {"seed": 1, "task": {"name": "x", "none": None}}, events=True)
    directory.event(Event(0, 1.5, "a", {"b": 1}))
    directory.write_result({"schema": 1, "best": None})
    directory.close()
    assert (tmp_path / "run" / "config.toml").read_text() == 'seed = 1\n\n[task]\nname = "x"\n'
    assert (tmp_path / "run" / "events.jsonl").read_text() == '{"seq":0,"t":1.5,"kind":"a","b":1}\n'
    assert read_result(tmp_path / "run") == {"schema": 1, "best": None}
    with pytest.raises(InputError, match="holds a run already"):
        RunDirectory(tmp_path / "run", {})


def created_until(statement: str, path: Path, config: Mapping[str, object]) -> None:
    """Create a run directory, and die when SQLite is to do a statement."""
    connect = sqlite3.connect

    def watched(*args: object, **kwargs: object) -> sqlite3.Connection:
        database: sqlite3.Connection = connect(*args, **kwargs)  # type: ignore[call-overload]
        database.set_trace_callback(lambda done: die() if done == statement else None)
        return database

    sqlite3.connect = watched  # type: ignore[assignment]
    RunDirectory(path, config)


def test_a_run_killed_before_its_configuration_file_is_written_has_it_in_its_journal(tmp_path: Path) -> None:
    assert dies(partial(created_until, "PRAGMA journal_mode=WAL", tmp_path, {"seed": 7}))
    assert not (tmp_path / "config.toml").exists()
    with RecordedRun(tmp_path) as recorded:
        assert recorded.config == {"seed": 7}


def test_a_run_killed_before_its_journal_has_tables_says_how_it_is_started(tmp_path: Path) -> None:
    assert dies(partial(created_until, "COMMIT", tmp_path, {"seed": 7}))
    with pytest.raises(InputError, match=f"never began; to start it, call flowevolve run CONFIG --out {tmp_path}"):
        RecordedRun(tmp_path)
    RunDirectory(tmp_path, {"seed": 7}).close()


def test_when_there_is_a_result_the_journal_has_all_that_it_names(tmp_path: Path) -> None:
    async def go() -> None:
        directory = RunDirectory(tmp_path / "run", {})
        for seq in range(100):
            directory.event(some_event(seq, "run.unpaused"))
        await directory.settled()  # which waits for nothing where time is virtual
        directory.write_result({"schema": 1})
        with closing(sqlite3.connect(tmp_path / "run" / "journal.sqlite")) as database:
            assert database.execute("SELECT count(*) FROM events").fetchone() == (100,)
        directory.close()

    clock.run(go, clock="virtual")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", r"result\.json is damaged: .*\. If you delete it, flowevolve resume .* writes it anew"),
        ("[]", "not a result that this version"),
        ('{"schema": 2}', "not a result that this version"),
    ],
)
def test_results_of_another_form_are_refused(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(InputError, match=says):
        read_result(tmp_path)


def test_a_run_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "run"
    directory = RunDirectory(path, {"seed": 1}, events=True)
    for seq in range(3):
        directory.event(Event(seq, seq / 3, "a", {"text": "lone \ud800, é"}))
    directory.close()
    whole = (path / "events.jsonl").read_bytes()
    with (path / "events.jsonl").open("ab") as file:
        file.write(b'{"seq":3,"t":0.7,"ki')  # torn, as a kill leaves it
    (path / "result.json.part").write_text("{")

    directory = RunDirectory(path, {"seed": 1, "drain_seconds": 5}, resume=True)
    assert (path / "events.jsonl").read_bytes() == whole
    assert (path / "config.toml").read_text() == "seed = 1\n"
    directory.event(some_event(3, "run.resumed"))
    directory.close()
    assert (path / "config.toml").read_text() == "seed = 1\ndrain_seconds = 5\n"
    assert not (path / "result.json.part").exists()
    lines = (path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [0, 1, 2, 3]
    assert json.loads(lines[0])["text"] == "lone \ud800, é"


def test_events_jsonl_on_a_full_disk_is_said_at_the_end_and_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_a_full_disk(path: Path, mode: str) -> IO[str]:
        return Path("/dev/full").open(mode)

    monkeypatch.setattr("flowevolve.journal.run_directory.open_text", on_a_full_disk)
    directory = RunDirectory(tmp_path / "run", {}, events=True)
    for seq in range(100):
        directory.event(Event(seq, 0.0, "a", {"text": "x" * 1000}))
    with pytest.raises(StorageError, match=r"events\.jsonl could not be written: .*No space left"):
        directory.close()
    monkeypatch.undo()
    RunDirectory(tmp_path / "run", {}, resume=True).close()
    assert len((tmp_path / "run" / "events.jsonl").read_text().splitlines()) == 100


def test_events_jsonl_comes_only_where_it_was_or_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "run"
    RunDirectory(path, {}).close()
    RunDirectory(path, {}, resume=True).close()
    assert not (path / "events.jsonl").exists()
    RunDirectory(path, {}, events=True, resume=True).close()
    assert (path / "events.jsonl").read_text() == ""


def test_where_no_run_was_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run to go on with"):
        RunDirectory(tmp_path, {}, resume=True)
    assert list(tmp_path.iterdir()) == []


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from flowevolve.journal.run_directory import RunDirectory; "
        "d = RunDirectory(Path(sys.argv[1]), {}); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "run")], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(InputError, match=rf"process {holder.pid} on .+ is at work in this run directory"):
            RunDirectory(tmp_path / "run", {}, resume=True)
        holder.kill()
    RunDirectory(tmp_path / "run", {}, resume=True).close()


def test_two_in_one_process_exclude_each_other_too(tmp_path: Path) -> None:
    first = RunDirectory(tmp_path / "run", {})
    with pytest.raises(InputError, match=f"process {os.getpid()} "):
        RunDirectory(tmp_path / "run", {}, resume=True)
    first.close()
    RunDirectory(tmp_path / "run", {}, resume=True).close()


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What was put on disk and what was put in another's place, by name, in order."""
    steps: list[tuple[str, str]] = []
    replace = Path.replace

    def note_replace(self: Path, target: Path) -> Path:
        steps.append(("replaced", target.name))
        return replace(self, target)

    monkeypatch.setattr(
        os, "fsync", lambda descriptor: steps.append(("synced", Path(f"/proc/self/fd/{descriptor}").readlink().name))
    )
    monkeypatch.setattr(Path, "replace", note_replace)
    return steps


def go_on(path: Path, sync: Sync) -> None:
    directory = RunDirectory(path, {}, sync=sync, resume=True)
    directory.event(some_event(1, "run.resumed"))
    directory.write_result({"schema": 1})
    directory.close()


WRITTEN = {
    name: [("synced", f"{name}.part"), ("replaced", name)] for name in ("config.toml", "events.jsonl", "result.json")
}


def test_a_file_takes_its_place_when_it_is_on_disk(tmp_path: Path, done: list[tuple[str, str]]) -> None:
    """Else a loss of power may leave it empty."""
    RunDirectory(tmp_path / "run", {}, events=True).close()
    assert done == [*WRITTEN["config.toml"], *WRITTEN["events.jsonl"]]
    done.clear()
    go_on(tmp_path / "run", "normal")
    assert done == [*WRITTEN["events.jsonl"], *WRITTEN["config.toml"], *WRITTEN["result.json"]]


def test_what_must_survive_a_loss_of_power_is_synced(tmp_path: Path, done: list[tuple[str, str]]) -> None:
    path = tmp_path / "run"
    folder, parent = ("synced", "run"), ("synced", tmp_path.name)
    RunDirectory(path, {}, sync="full").close()
    assert done == [*WRITTEN["config.toml"], folder, parent]
    done.clear()
    go_on(path, "full")
    assert done == [folder, parent, *WRITTEN["config.toml"], folder, *WRITTEN["result.json"], folder]


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_a_full_disk(path: Path, mode: str) -> IO[str]:
        return Path("/dev/full").open(mode)

    monkeypatch.setattr("flowevolve.journal.files.open_text", on_a_full_disk)


def test_a_result_that_finds_no_space_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = RunDirectory(tmp_path, {})
    fill_disk(monkeypatch)
    with pytest.raises(
        StorageError, match=r"result\.json can't be written: .*No space left.*\. Free some space, .* resume"
    ):
        directory.write_result({"schema": 1})
    directory.close()
    assert not (tmp_path / "result.json").exists()


def test_a_result_that_can_not_be_written_for_another_reason_is_not_told_to_want_space(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, {})
    (tmp_path / "result.json.part").mkdir()
    with pytest.raises(StorageError, match=r"result\.json can't be written: .*\. Mend that, and resume the run"):
        directory.write_result({"schema": 1})
    directory.close()


def test_a_run_does_not_go_on_where_there_is_no_space_for_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunDirectory(tmp_path, {"seed": 1}).close()
    directory = RunDirectory(tmp_path, {"seed": 2}, resume=True)
    fill_disk(monkeypatch)
    directory.event(some_event(0, "run.resumed"))
    with pytest.raises(StorageError, match=r"config\.toml can't be written: .*No space left"):
        clock.run(directory.settled, clock="virtual")
    directory.close()
    assert (tmp_path / "config.toml").read_text() == "seed = 1\n"
