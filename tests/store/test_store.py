"""The journal holds every event and call in order; a run directory is never written over."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from flowevolve.errors import InputError, StorageError
from flowevolve.events import Event, EventLog
from flowevolve.llm.calls import CallRecord, CallScope
from flowevolve.llm.types import ChatReply, ChatRequest, Message, Usage
from flowevolve.store.journal import Journal
from flowevolve.store.rundir import RunDirectory, read_result

REQUEST = ChatRequest("m", (Message("user", "hé"),), seed=7)
SCOPE = CallScope("screen", "3.0", "c1", 2, 0)


def call(number: int, error: str | None = None) -> CallRecord:
    reply = None if error else ChatReply(f"reply {number}", Usage(1, 2, 3))
    return CallRecord("task", SCOPE, REQUEST, reply, error, 1, 0.0, 0.5, 1.0)


def test_everything_is_there_in_order(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        for number in range(2500):
            journal.event(Event(number, number / 10, "test.kind", {"n": number}))
        journal.call(call(1))
        journal.call(call(2, error="ServerError: x"))
    with sqlite3.connect(tmp_path / "j.sqlite") as database:
        events = database.execute("SELECT seq, t, kind, data FROM events ORDER BY seq").fetchall()
        calls = database.execute("SELECT stage, item, candidate, reply, error, completion_tokens FROM calls").fetchall()
    assert [json.loads(data)["n"] for _, _, _, data in events] == list(range(2500))
    assert calls == [("screen", "3.0", "c1", "reply 1", None, 2), ("screen", "3.0", "c1", None, "ServerError: x", None)]


def test_a_journal_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        journal.event(Event(0, 0.0, "a", {}))
        with sqlite3.connect(tmp_path / "j.sqlite") as reader:
            reader.execute("SELECT count(*) FROM events").fetchone()
        journal.event(Event(1, 0.0, "b", {}))
    with sqlite3.connect(tmp_path / "j.sqlite") as reader:
        assert reader.execute("SELECT count(*) FROM events").fetchone() == (2,)


def test_what_could_not_be_written_is_not_kept_quiet(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.event(Event(0, 0.0, "a", {}))
    journal.event(Event(0, 0.0, "the same number again", {}))
    with pytest.raises(StorageError, match="not complete"):
        journal.close()


def test_a_journal_of_schema_1_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        journal.call(call(1))
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE calls DROP COLUMN cached")
        database.execute("UPDATE meta SET value = '1'")
    database.close()
    with Journal(path) as journal:
        journal.call(replace(call(2), reply=ChatReply("again", Usage(1, 2, 3), cached=True)))
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT reply, cached FROM calls").fetchall() == [("reply 1", 0), ("again", 1)]
        assert database.execute("SELECT value FROM meta").fetchall() == [("2",)]
    database.close()


def test_a_place_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't write a journal"):
        Journal(tmp_path)


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


@pytest.mark.parametrize(
    ("content", "says"), [("{", "can't be read"), ("[]", "schema 1"), ('{"schema": 2}', "schema 1")]
)
def test_results_of_another_form_are_refused(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(InputError, match=says):
        read_result(tmp_path)


def test_events_are_numbered_and_reach_every_sink_until_it_leaves() -> None:
    now = [10.0]
    log = EventLog(lambda: now[0])
    first: list[Event] = []
    second: list[Event] = []
    log.subscribe(first.append)
    leave = log.subscribe(second.append)
    log.emit("a", {})
    leave()
    now[0] = 12.5
    log.emit("b", {"x": 1})
    assert [(event.seq, event.time, event.kind) for event in first] == [(0, 0.0, "a"), (1, 2.5, "b")]
    assert len(second) == 1
