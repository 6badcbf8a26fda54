"""What was recorded is read back as it was, from running, killed and finished runs, without being in the run's way."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.journal.payloads import load
from flowevolve.journal.reading import PAGE, RecordedRun
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.llm.client.accounting import Account, Price
from flowevolve.runner.run import Watchers, run
from tests.support.some_events import some_event

LONE = "lone \ud800"
REQUEST = ChatRequest("m", (Message("system", "é" * 2000), Message("user", LONE)), 0.5, 100, 7)
RECORD = CallRecord(
    "task",
    CallScope("screen", "3.0/e1", "c1", 2, 1),
    REQUEST,
    ChatReply("reply " * 500, Usage(10, 5, 3), "length"),
    None,
    2,
    10.0,
    10.5,
    12.0,
)


def of(item: str, stage: str = "screen") -> CallRecord:
    return replace(RECORD, scope=replace(RECORD.scope, stage=stage, item=item))


def test_a_running_run_is_read_without_disturbing_it(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, {"seed": 3})
    with RecordedRun(tmp_path) as recorded:
        assert recorded.schema == 6
        assert recorded.config == {"seed": 3}
        assert recorded.meta("schema") == "6"
        assert recorded.meta("nothing") is None
        assert recorded.last_event() is None
        assert list(recorded.calls()) == []
    for seq in range(3 * PAGE):
        directory.event(Event(seq, seq / 10, "a", {"text": LONE, "n": seq}))
    directory.close()
    with RecordedRun(tmp_path) as recorded:
        events = recorded.events(after=1)
        assert next(events) == Event(2, 0.2, "a", {"text": LONE, "n": 2})
        other = RunDirectory(tmp_path, {"seed": 3}, resume=True)  # in the middle of reading
        other.event(Event(3 * PAGE, 0.5, "b", {}))
        other.close()
        assert [event.seq for event in events] == list(range(3, 3 * PAGE + 1))
        assert recorded.last_event() == (3 * PAGE, 0.5)
        assert recorded.event(5).data["n"] == 5


def test_calls_come_back_as_they_were(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, {})
    directory.begin(10.0)
    directory.journal.call(RECORD)
    directory.event(Event(0, 0.0, "a", {}))
    directory.journal.call(replace(RECORD, reply=None, error=LONE))
    directory.journal.call(replace(RECORD, reply=ChatReply("", Usage(1, 2, 3), cached=True), attempts=0))
    directory.close()
    with RecordedRun(tmp_path) as recorded:
        first, failed, cached = recorded.calls()
    assert first.messages == REQUEST.messages
    assert (first.temperature, first.max_tokens, first.seed, first.model) == (0.5, 100, 7, "m")
    assert (first.role, first.stage, first.item, first.index, first.candidate) == ("task", "screen", "3.0/e1", 1, "c1")
    assert (first.reply, first.usage, first.finish_reason) == ("reply " * 500, Usage(10, 5, 3), "length")
    assert (first.error, first.cached, first.attempts) == (None, False, 2)
    assert (first.seq, first.queued, first.started, first.finished) == (-1, 0.0, 0.5, 2.0)
    assert (failed.seq, failed.error, failed.reply, failed.usage) == (0, LONE, None, None)
    assert (cached.cached, cached.reply, cached.usage) == (True, "", Usage(1, 2, 3))


def test_the_calls_of_an_item_are_its_own_and_its_pieces(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, {})
    for item in ("3.0", "3.0/e1", "3.0/e1/x", "3.0.1", "3.01", "13.0", "3.0.r/e1"):
        directory.journal.call(of(item))
    directory.journal.call(of("3.0/e2", "evaluate"))
    directory.close()
    with RecordedRun(tmp_path) as recorded:
        assert [call.item for call in recorded.calls_of("screen", "3.0")] == ["3.0", "3.0/e1", "3.0/e1/x"]
        assert [call.item for call in recorded.calls_of("evaluate", "3.0")] == ["3.0/e2"]
        assert recorded.calls_of("generate", "3.0") == []


def test_payloads_and_their_artifacts(tmp_path: Path) -> None:
    first, second = Artifact({"p": "one"}), Artifact({"p": LONE}, "program")
    directory = RunDirectory(tmp_path, {})
    for seq, artifact in enumerate((first, second)):
        proposed: dict[str, JSON] = {"candidate": f"c{seq}", "artifact": artifact.id}
        proposed |= {"kind_of_artifact": artifact.kind, "components": dict(artifact)}
        directory.event(some_event(seq, "candidate.proposed", **proposed))
    directory.event(replace(some_event(2, "item.sent", item="1.0"), attachment=(second, "x")))
    directory.close()
    with RecordedRun(tmp_path) as recorded:
        artifacts = recorded.artifacts([second.id, "unknown"])
        assert artifacts == {second.id: second}
        assert artifacts[second.id].kind == "program"
        data = recorded.payload("1.0")
        assert data is not None
        assert load(data, artifacts) == (second, "x")
        assert recorded.payloads() == {"1.0": data}
        assert recorded.payload("2.0") is None


def test_what_was_spent_is_restored(tmp_path: Path) -> None:
    prices = {"simulated": Price(1.0, 0.5, 2.0)}
    account = Account(prices)
    spent: list[CallRecord] = []
    table = {
        "clock": "virtual",
        "budget": {"proposals": 8},
        "llm": {"cache": {"path": str(tmp_path / "c.sqlite")}, "prices": {"simulated": {"input": 1.0, "output": 2.0}}},
    }
    config = parse_config(table, "test")

    async def go(out: Path) -> object:
        return await run(config, out=out, watchers=Watchers(calls=[spent.append]))

    clock.run(go, tmp_path / "first", clock="virtual")
    spent.clear()
    clock.run(go, tmp_path / "second", clock="virtual")
    with RecordedRun(tmp_path / "second") as recorded:
        account.restore(recorded.totals())
        calls = list(recorded.calls())
    assert [(call.item, call.reply, call.cached) for call in calls] == [
        (record.scope.item, record.reply.text if record.reply else None, record.cached) for record in spent
    ]
    result = json.loads((tmp_path / "second" / "result.json").read_text())
    totals = account.totals()
    assert totals.requests == result["llm"]["requests"]
    assert totals.cached_calls == result["llm"]["cached_calls"] > 0
    assert totals.cached_calls_tokens == result["llm"]["cached_calls_tokens"]
    assert totals.usage.prompt_tokens == result["llm"]["prompt_tokens"]
    assert account.by_model().keys() == {call.model for call in calls}


def test_sums_are_those_of_the_calls(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, {})
    directory.journal.call(RECORD)
    directory.journal.call(replace(RECORD, reply=None, error="x", attempts=4, failed_usage=Usage(7, 2)))
    directory.journal.call(replace(RECORD, reply=ChatReply("", Usage(100, 20), cached=True), attempts=0))
    directory.close()
    account = Account({"m": Price(1e6, 1e6, 2e6)})
    with RecordedRun(tmp_path) as recorded:
        account.restore(recorded.totals())
        assert [head.record.failed_usage for head in recorded.call_heads()] == [Usage(), Usage(7, 2), Usage()]
        assert [head.record.reply is None for head in recorded.call_heads()] == [False, True, False]
    totals = account.totals()
    assert (totals.requests, totals.failed, totals.retries) == (2, 1, 4)
    assert (totals.usage, totals.latency_seconds, totals.dollars) == (Usage(17, 7, 3), 3.0, 31.0)
    assert (totals.cached_calls, totals.cached_calls_tokens) == (1, 120)
    assert account.by_model().keys() == {"m"}


OLD = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE events (seq INTEGER PRIMARY KEY, t REAL NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, role TEXT NOT NULL, model TEXT NOT NULL, stage TEXT NOT NULL, item TEXT NOT NULL,
    idx INTEGER NOT NULL, candidate TEXT, request TEXT NOT NULL, reply TEXT, error TEXT, finish_reason TEXT,
    prompt_tokens INTEGER, completion_tokens INTEGER, cached_tokens INTEGER,
    attempts INTEGER NOT NULL, queued REAL NOT NULL, started REAL NOT NULL, finished REAL NOT NULL
);
INSERT INTO events VALUES (0, 0.5, 'a', '{"x":1}');
INSERT INTO calls VALUES (NULL, 'task', 'm', 'screen', '3.0', 0, 'c1',
    '{"messages":[["system","be"],["user","hé"]],"temperature":0.5,"max_tokens":null,"seed":7}',
    'reply', NULL, 'stop', 1, 2, 3, 1, 10.0, 10.5, 11.0);
"""


@pytest.mark.parametrize("schema", [1, 2])
def test_journals_of_older_schemas_are_read(schema: int, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as database:
        database.executescript(OLD)
        database.execute("INSERT INTO meta VALUES ('schema', ?)", (str(schema),))
        if schema == 2:
            database.execute("ALTER TABLE calls ADD COLUMN cached INTEGER NOT NULL DEFAULT 0")
        database.commit()
    with RecordedRun(tmp_path) as recorded:
        (call,) = recorded.calls()
        assert call.messages == (Message("system", "be"), Message("user", "hé"))
        assert (call.temperature, call.max_tokens, call.seed, call.seq, call.cached) == (0.5, None, 7, -1, False)
        assert recorded.calls_of("screen", "3.0") == [call]
        assert recorded.totals()[0].totals.requests == 1
        assert recorded.payload("3.0") is None
        assert recorded.payloads() == {}
        assert recorded.last_event() == (0, 0.5)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "holds no run"),
        (b"not a database, though it should be one", "is damaged: file is not"),
        (b"", "is empty"),
    ],
)
def test_what_is_no_journal_is_said_in_one_line(content: bytes | None, says: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "journal.sqlite").write_bytes(content)
    with pytest.raises(InputError, match=says):
        RecordedRun(tmp_path)
    with pytest.raises(InputError, match="no such run directory"):
        RecordedRun(tmp_path / "nowhere")


def test_a_folder_of_runs_says_that_they_are_in_it(tmp_path: Path) -> None:
    RunDirectory(tmp_path / "a", {}).close()
    with pytest.raises(
        InputError, match=f"is not a run directory, but it contains some; .* {re.escape(str(tmp_path / 'a'))}$"
    ):
        RecordedRun(tmp_path)


def test_a_journal_of_the_future_is_refused(tmp_path: Path) -> None:
    RunDirectory(tmp_path, {}).close()
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
        database.commit()
    with pytest.raises(InputError, match=r"\(schema 99\)"):
        RecordedRun(tmp_path)


def test_reading_leaves_a_finished_run_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run"
    directory = RunDirectory(path, {})
    directory.event(Event(0, 0.0, "a", {}))
    directory.close()
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with RecordedRun(path) as recorded:
        assert recorded.last_event() == (0, 0.0)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


def test_a_killed_run_is_read_up_to_its_last_transaction(tmp_path: Path) -> None:
    path, copy = tmp_path / "run", tmp_path / "copy"
    RunDirectory(path, {}).close()
    with closing(sqlite3.connect(path / "journal.sqlite")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("INSERT INTO events (seq, t, kind, data) VALUES (10, 0.0, 'b', '{}')")
        database.commit()
        shutil.copytree(path, copy)  # with the write-ahead log that a kill leaves
    assert (copy / "journal.sqlite-wal").stat().st_size > 0
    with RecordedRun(copy) as recorded:
        assert recorded.last_event() == (10, 0.0)
