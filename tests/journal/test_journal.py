"""The journal holds every event and call in order, whole steps at a time, whatever ends the process."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from flowevolve._util import clock
from flowevolve._util.errors import InputError, StorageError
from flowevolve.core.artifact import Artifact
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.core.payload_kinds import payload
from flowevolve.journal.journal import Journal
from flowevolve.journal.payloads import load
from tests.support.some_events import some_event

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
REQUEST = ChatRequest("m", (Message("user", "hé"),), seed=7)
SCOPE = CallScope("screen", "3.0", "c1", 2, 0)


def call(number: int, error: str | None = None) -> CallRecord:
    reply = None if error else ChatReply(f"reply {number}", Usage(1, 2, 3))
    return CallRecord("task", SCOPE, REQUEST, reply, error, 1, 0.0, 0.5, 1.0)


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        yield database


def numbers(path: Path) -> list[int]:
    with reading(path) as database:
        return [seq for (seq,) in database.execute("SELECT seq FROM events ORDER BY seq")]


def test_everything_is_there_in_order(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "j.sqlite")) as journal:
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
    with closing(Journal(tmp_path / "j.sqlite")) as journal:
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
    with pytest.raises(StorageError, match="could not be written"):
        journal.close()


@pytest.mark.parametrize("schema", [1, 2])
def test_a_journal_of_an_older_schema_is_not_gone_on_with(schema: int, tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    Journal(path).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE meta SET value = ?", (str(schema),))
    database.close()
    with pytest.raises(InputError, match=f"was written by an earlier version of flowevolve \\(schema {schema}"):
        Journal(path, resume=True)


def test_a_journal_is_gone_on_with_only_on_purpose(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with pytest.raises(InputError, match="no journal to go on with"):
        Journal(path, resume=True)
    with closing(Journal(path)) as journal:
        journal.event(Event(0, 0.0, "a", {}))
    with pytest.raises(InputError, match="holds a journal already"):
        Journal(path)
    with closing(Journal(path, resume=True)) as journal:
        journal.call(call(1))
        journal.event(Event(1, 0.0, "b", {}))
    with reading(path) as database:
        assert database.execute("SELECT seq FROM calls").fetchall() == [(0,)]
    assert numbers(path) == [0, 1]


def test_another_sqlite_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE precious (x)")
    before = path.read_bytes()
    for resume in (False, True):
        with pytest.raises(InputError, match=r"other\.sqlite is no journal"):
            Journal(path, resume=resume)
    assert path.read_bytes() == before


def test_calls_stand_in_order_among_the_events_and_in_the_runs_time(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "j.sqlite")) as journal:
        journal.begin(0.25)
        journal.call(call(1))
        journal.event(Event(0, 0.0, "a", {}))
        journal.event(Event(1, 0.0, "b", {}))
        journal.call(call(2))
    with reading(tmp_path / "j.sqlite") as database:
        rows = database.execute("SELECT reply, seq, queued, started, finished FROM calls ORDER BY id").fetchall()
    assert rows == [("reply 1", -1, -0.25, 0.25, 0.75), ("reply 2", 1, -0.25, 0.25, 0.75)]


def test_a_text_that_recurs_is_stored_once(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "j.sqlite")) as journal:
        for number in range(50):
            messages = (Message("system", "the same for all" * 100), Message("user", f"question {number % 5}"))
            journal.call(replace(call(number), request=replace(REQUEST, messages=messages)))
    with reading(tmp_path / "j.sqlite") as database:
        assert database.execute("SELECT count(*) FROM texts").fetchone() == (6,)
        assert database.execute("SELECT count(*) FROM calls").fetchone() == (50,)


async def test_lone_surrogates_anywhere_do_not_stop_the_writer(tmp_path: Path) -> None:
    lone = "x\ud83d\ude00\ud800"
    with closing(Journal(tmp_path / "j.sqlite")) as journal:
        journal.event(some_event(0, "candidate.proposed", artifact="a", components={"p": lone}))
        request = replace(REQUEST, messages=(Message("user", lone),))
        scope = replace(SCOPE, item=f"3.0/{lone}")
        journal.call(replace(call(1), scope=scope, request=request, reply=ChatReply(lone, finish_reason=lone)))
        journal.call(replace(call(2, error=lone), scope=scope))
        await journal.settled()
    assert numbers(tmp_path / "j.sqlite") == [0]


def test_a_journal_with_lone_surrogates_is_gone_on_with(tmp_path: Path) -> None:
    path, artifact = tmp_path / "j.sqlite", Artifact({"p": "\ud800" * 500})
    with closing(Journal(path)) as journal:
        journal.event(some_event(0, "candidate.proposed", artifact=artifact.id, components=dict(artifact)))
    with closing(Journal(path, resume=True)) as journal:
        journal.event(sent(1, "1.0", artifact))
    assert len(payloads(path)["1.0"]) < 500


@payload("tests.Payload")
@dataclass(frozen=True)
class Payload:
    artifact: Artifact
    scores: object


def sent(seq: int, item: str, payload: object) -> Event:
    return replace(some_event(seq, "item.sent", item=item), attachment=payload)


def payloads(path: Path) -> dict[str, bytes]:
    with reading(path) as database:
        return dict(database.execute("SELECT item, data FROM payloads"))


def test_payloads_are_kept_as_long_as_their_flow_is_open(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    artifact = Artifact({"p": "a long text " * 100})
    payload = Payload(artifact, MappingProxyType({"e": 0.5}))
    with closing(Journal(path)) as journal:
        journal.event(some_event(0, "candidate.proposed", artifact=artifact.id, components=dict(artifact)))
        journal.event(sent(1, "1.0", payload))
        journal.event(sent(2, "11.0.r", payload))
        journal.event(sent(3, "1", "anything"))
        journal.event(some_event(4, "flow.close", flow=1))
    (item,) = payloads(path)
    assert item == "11.0.r"
    with closing(Journal(path, resume=True)) as journal:
        journal.event(sent(5, "12.0", payload))
    for data in payloads(path).values():
        assert len(data) < 500  # the artifact is named
        assert load(data, {artifact.id: artifact}) == payload


def test_a_payload_that_cannot_be_kept_is_left_out_and_its_type_named_once(tmp_path: Path) -> None:
    with capture_logs() as logs, closing(Journal(tmp_path / "j.sqlite")) as journal:
        journal.event(sent(0, "1.0", lambda: None))
        journal.event(sent(1, "2.0", lambda: None))
        journal.event(sent(2, "2.1", "fine"))
    (said,) = logs
    assert (said["event"], said["payload"]) == ("payload.not_kept", "function")
    assert "the journal can't hold a builtins.function" in said["why"]
    assert numbers(tmp_path / "j.sqlite") == [0, 1, 2]
    assert list(payloads(tmp_path / "j.sqlite")) == ["2.1"]


async def test_settled_means_on_disk(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "j.sqlite", sync="full")) as journal:
        for seq in range(3):
            journal.event(Event(seq, 0.0, "a", {}))
            await journal.settled()
            assert numbers(tmp_path / "j.sqlite") == list(range(seq + 1))


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
async def test_a_journal_that_is_gone_is_told_and_not_written_into_the_void(how: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    journal = Journal(folder / "j.sqlite")
    journal.event(Event(0, 0.0, "a", {}))
    await journal.settled()
    folder.rename(tmp_path / "elsewhere")
    if how == "replaced":
        folder.mkdir()
        (folder / "j.sqlite").touch()
    if how == "removed":
        shutil.rmtree(tmp_path / "elsewhere")
    journal.event(Event(1, 0.0, "b", {}))
    with pytest.raises(StorageError, match=r"j.sqlite was removed, moved or replaced during the run"):
        await journal.settled()
    with pytest.raises(StorageError, match="moved or replaced"):
        journal.close()
    if how == "moved":
        assert numbers(tmp_path / "elsewhere" / "j.sqlite") == [0]


def test_on_a_virtual_clock_nothing_waits_for_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    journal = Journal(path)

    async def go() -> float:
        for seq in range(100):
            journal.event(Event(seq, 0.0, "a", {}))
            await journal.settled()
            await anyio.sleep(1)
        return anyio.current_time()

    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")  # the writer can't get on
        assert clock.run(go, clock="virtual") == 100.0
        assert numbers(path) == []
    journal.close()
    assert numbers(path) == list(range(100))


async def test_a_full_disk_is_one_clear_error_and_costs_nothing_that_was_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.sqlite"
    connect = sqlite3.connect

    def on_a_small_disk(*args: object, **kwargs: object) -> sqlite3.Connection:
        database = connect(*args, **kwargs)  # type: ignore[call-overload]
        database.execute("PRAGMA max_page_count = 60")
        assert isinstance(database, sqlite3.Connection)
        return database

    monkeypatch.setattr(sqlite3, "connect", on_a_small_disk)
    journal = Journal(path)
    settled = 0

    async def write_on() -> None:
        nonlocal settled
        while True:
            for seq in range(settled, settled + 3):
                journal.event(Event(seq, 0.0, "a", {"text": "x" * 1000}))
            await journal.settled()
            settled += 3

    with pytest.raises(StorageError, match=r"j\.sqlite: the journal could not be written: database or disk is full"):
        await write_on()
    with pytest.raises(StorageError):
        await journal.settled()
    with pytest.raises(StorageError):
        journal.close()
    monkeypatch.undo()
    assert settled > 10
    assert numbers(path) == list(range(settled))
    with closing(Journal(path, resume=True)) as journal:
        journal.event(Event(settled, 0.0, "b", {}))
    assert numbers(path) == list(range(settled + 1))


STEPS = """
import sys
from pathlib import Path
import anyio
from flowevolve.core.events import Event
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.model import ChatReply, ChatRequest, Message
from flowevolve.journal.journal import Journal

async def go():
    journal = Journal(Path(sys.argv[1]))
    request = ChatRequest("m", (Message("user", "x" * 500),))
    for step in range(10**6):
        for part in range(4):
            journal.event(Event(4 * step + part, 0.0, "a", {"step": step, "item": f"{step}.0"}, "x" * 2000))
        scope = CallScope("s", str(step), None, 0, 0)
        journal.call(CallRecord("task", scope, request, ChatReply("y" * 3000), None, 1, 0.0, 0.0, 0.0))
        if step % 7 == 0:
            await journal.settled()
            print(step, flush=True)
        else:
            await anyio.sleep(0)

anyio.run(go)
"""


@pytest.mark.parametrize("after", [1, 40, 130])
def test_killed_every_step_is_whole_or_absent_and_what_was_settled_is_there(after: int, tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    settled = -1
    with subprocess.Popen(
        [sys.executable, "-c", STEPS, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(after):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()
        settled = max(map(int, rest.split()), default=7 * (after - 1))
    with closing(Journal(path, resume=True)), reading(path) as database:
        events = [json.loads(data)["step"] for (data,) in database.execute("SELECT data FROM events ORDER BY seq")]
        calls = [int(item) for (item,) in database.execute("SELECT item FROM calls ORDER BY id")]
        saved = [int(item.partition(".")[0]) for (item,) in database.execute("SELECT item FROM payloads")]
    assert calls == list(range(len(calls)))  # a beginning of the run, nothing missing in between
    assert Counter(events) == dict.fromkeys(calls, 4)
    assert Counter(saved) == dict.fromkeys(calls, 4)
    assert len(calls) > settled


def test_a_place_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a journal can't be written here"):
        Journal(tmp_path)
