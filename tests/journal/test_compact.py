"""Compacting drops the texts of calls that no run will ask for again, and nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from flowevolve._util import clock
from flowevolve._util.errors import InputError, StorageError
from flowevolve._util.registry import Registry
from flowevolve.algorithms.gepa import GEPA
from flowevolve.config.run import parse_config
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.context import UpdateContext
from flowevolve.core.model import ChatReply, ChatRequest, Message, Usage
from flowevolve.journal.compact import compact
from flowevolve.journal.reading import RecordedCall, RecordedRun
from flowevolve.journal.run_directory import RunDirectory
from flowevolve.runner import assemble as build
from flowevolve.runner.result import Result
from flowevolve.runner.resume import resume
from flowevolve.runner.run import run
from tests.support.journals import edited
from tests.support.some_events import some_event

SHARED = Message("system", "shared " * 400)


def call(item: str, number: int) -> CallRecord:
    request = ChatRequest("m", (SHARED, Message("user", f"{number} lone \ud800")))
    scope = CallScope("screen", item, "c1", 2, 0)
    text = "".join(chr(0x4E00 + (number * 7919 + place * place) % 20000) for place in range(3000))
    return CallRecord("task", scope, request, ChatReply(text, Usage(1, 2, 3)), None, 1, 0.0, 0.5, 1.0)


def recorded_run(path: Path) -> RunDirectory:
    """Flow 0 has ended, flow 1 is open, and one call belongs to none."""
    directory = RunDirectory(path, {})
    directory.event(some_event(0, "flow.open", flow=0))
    for number in range(40):
        directory.journal.call(call(f"0.0/e{number}", number))
    directory.event(replace(some_event(1, "item.sent", item="1.0"), attachment="payload"))
    directory.journal.call(replace(call("0.0", 40), reply=None, error="failed"))
    directory.journal.call(call("1.0/e1", 41))
    directory.journal.call(call("c1/e1", 42))
    directory.event(some_event(2, "flow.close", flow=0))
    return directory


def test_what_was_counted_stays_and_the_file_shrinks(tmp_path: Path) -> None:
    recorded_run(tmp_path).close()
    with RecordedRun(tmp_path) as recorded:
        before, totals = list(recorded.calls()), recorded.totals()
        events, payloads = list(recorded.events()), recorded.payloads()
    done = compact(tmp_path)
    assert done.calls == 41
    assert done.after < done.before / 3
    assert done.after == (tmp_path / "journal.sqlite").stat().st_size
    with RecordedRun(tmp_path) as recorded:
        after = list(recorded.calls())
        assert recorded.totals() == totals
        assert list(recorded.events()) == events
        assert recorded.payloads() == payloads
    assert after[:41] == [replace(each, messages=None, reply=None) for each in before[:41]]
    assert after[41:] == before[41:]
    assert compact(tmp_path).calls == 0


def test_a_compacted_run_is_gone_on_with(tmp_path: Path) -> None:
    recorded_run(tmp_path).close()
    compact(tmp_path)
    directory = RunDirectory(tmp_path, {}, resume=True)
    directory.journal.call(call("1.0", 43))
    directory.close()
    with RecordedRun(tmp_path) as recorded:
        last = list(recorded.calls())[-1]
    asked = call("1.0", 43).request
    assert isinstance(asked, ChatRequest)
    assert last.messages == asked.messages


class Asking(GEPA):
    """Asks two things in fit."""

    name = "asking"

    async def fit(self, context: UpdateContext) -> None:
        for asked in ("one", "two"):
            await context.chat("reflection", [Message("user", asked)])


def test_what_fit_was_told_is_kept_until_it_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ALGORITHMS", Registry("algorithm", "nowhere", {"asking": Asking}))
    config = parse_config({"clock": "virtual", "algorithm": {"name": "asking"}, "budget": {"proposals": 1}}, "test")

    async def begin() -> Result:
        return await run(config, out=tmp_path)

    async def go_on() -> Result:
        return await resume(tmp_path, changes=["budget.proposals=2"])

    def of_fit() -> list[RecordedCall]:
        with RecordedRun(tmp_path) as recorded:
            return [call for call in recorded.calls() if call.stage == "fit"]

    clock.run(begin, clock="virtual")
    (tmp_path / "result.json").unlink()
    with edited(tmp_path) as database:  # as if killed between the two
        database.execute("DELETE FROM calls WHERE id > (SELECT min(id) FROM calls WHERE stage = 'fit')")
        database.execute("DELETE FROM events WHERE seq > (SELECT max(seq) FROM calls)")
    assert compact(tmp_path).calls > 0
    assert [call.reply is not None for call in of_fit()] == [True]
    result = clock.run(go_on, clock="virtual")
    assert result.report.spent.tokens == result.llm.usage.total_tokens
    assert [call.reply is not None for call in of_fit()] == [True, True]
    compact(tmp_path)
    assert [call.reply is not None for call in of_fit()] == [False, False]


def test_a_run_that_is_going_on_is_left_alone(tmp_path: Path) -> None:
    directory = recorded_run(tmp_path)
    with pytest.raises(InputError, match="is at work in this run directory"):
        compact(tmp_path)
    directory.close()
    assert compact(tmp_path).calls == 41


def test_what_cannot_be_compacted_is_said_and_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no such run directory"):
        compact(tmp_path / "nowhere")
    recorded_run(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as database:
        database.execute("CREATE TRIGGER full BEFORE UPDATE ON calls BEGIN SELECT raise(ABORT, 'disk full'); END")
        database.commit()
        with pytest.raises(StorageError, match=r"could not be compacted: disk full\. Nothing in it is lost"):
            compact(tmp_path)
        with RecordedRun(tmp_path) as recorded:
            assert all(each.messages is not None for each in recorded.calls())
        database.execute("DROP TRIGGER full")
        database.execute("UPDATE meta SET value = '2' WHERE key = 'schema'")
        database.execute("ALTER TABLE calls ADD COLUMN request")
        database.commit()
    (tmp_path / "journal.end").unlink()
    with pytest.raises(InputError, match=r"was written by an earlier version of flowevolve \(schema 2\)"):
        compact(tmp_path)
