"""What a model thought is taken off its reply before anybody reads it, and is kept beside it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, CutWhileThinkingError, Message, Usage
from flowevolve.journal.compact import compact
from flowevolve.journal.export import export
from flowevolve.journal.history import RunHistory
from flowevolve.journal.journal import Journal
from flowevolve.journal.opening import JOURNAL
from flowevolve.journal.reading import RecordedRun
from flowevolve.llm.client.accounting import Account, Price
from flowevolve.llm.client.cache import ResponseCache, open_cache
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler

pytestmark = pytest.mark.anyio

USAGE = Usage(100, 50)
THOUGHT = ChatReply("<think>\n2 + 2\n</think>\n\n4", USAGE, model="m")


class Server:
    """Answers with these replies, one after another."""

    base_url = "http://fake/v1"

    def __init__(self, *replies: ChatReply) -> None:
        self.replies = list(replies)

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        return self.replies.pop(0)

    async def models(self) -> tuple[str, ...]:
        return ("m",)

    async def aclose(self) -> None:
        pass


class Rig:
    """A client over one server, and what its observer saw."""

    def __init__(
        self, server: Server, *, keep: bool = False, fails_if_cut: bool = True, cache: ResponseCache | None = None
    ) -> None:
        self.records: list[CallRecord] = []
        self.account = Account({"m": Price(1, 1, 10)})
        role = Model(server, "m", max_tokens=400, keep_thinking=keep, fails_if_cut=fails_if_cut)
        self.client = LLMClient({"r": role}, Scheduler(4), RetryPolicy(), 7, self.records.append, self.account, cache)

    async def ask(self, item: str = "1") -> ChatReply:
        scope = CallScope("generate", item, None, 0, 0)
        return await self.client.chat("r", [Message("user", "2 + 2?")], scope=scope)


async def test_the_answer_alone_is_the_text_and_the_thoughts_stand_beside_it() -> None:
    rig = Rig(Server(THOUGHT))
    reply = await rig.ask()
    assert (reply.text, reply.thinking) == ("4", "2 + 2")
    assert rig.records[0].reply == reply


async def test_thoughts_that_came_apart_are_joined_by_those_in_the_text() -> None:
    rig = Rig(Server(ChatReply("<think>then</think>4", USAGE, thinking="first")))
    assert (await rig.ask()).thinking == "first\n\nthen"


async def test_a_reply_without_thinking_is_the_one_that_came() -> None:
    plain = ChatReply(" 4 \n", USAGE, model="m")
    reply = await Rig(Server(plain)).ask()
    assert (reply.text, reply.thinking) == (" 4 \n", "")


async def test_kept_thinking_leaves_the_text_as_it_came() -> None:
    reply = await Rig(Server(THOUGHT), keep=True).ask()
    assert (reply.text, reply.thinking) == (THOUGHT.text, "")


async def test_thinking_is_paid_for_and_estimated_where_the_server_counts_nothing() -> None:
    """A token for 4 characters of the answer and of the thoughts, whichever way they came."""
    apart = ChatReply("4444", Usage(100), model="m", thinking="t" * 40)
    together = ChatReply(f"<think>{'t' * 40}</think>4444", Usage(100), model="m")
    rig = Rig(Server(apart, together, ChatReply("", Usage(100), model="m", thinking="t" * 40)))
    assert [(await rig.ask(item)).usage.completion_tokens for item in "123"] == [11, 11, 10]


async def test_what_was_cut_off_while_thinking_is_a_failure_of_its_own() -> None:
    rig = Rig(Server(ChatReply("<think>\nLet me", USAGE, "length", "m")))
    with pytest.raises(CutWhileThinkingError, match=r"cut off while thinking, after 50 tokens \(max_tokens = 400\)"):
        await rig.ask()
    [record] = rig.records
    assert record.reply is None
    assert record.error is not None
    assert record.error.startswith("CutWhileThinkingError: ")
    assert (record.attempts, record.failed_usage) == (1, USAGE)
    totals = rig.account.totals()
    assert (totals.requests, totals.failed, totals.cut_while_thinking, totals.usage) == (1, 1, 1, USAGE)
    assert totals.dollars == pytest.approx(600e-6)


async def test_where_it_is_no_failure_the_answer_is_empty_and_counted(tmp_path: Path) -> None:
    """As with the simulated server."""
    rig = Rig(Server(ChatReply("", USAGE, "length", "m"), ChatReply("4", USAGE, "length", "m")), fails_if_cut=False)
    assert [(await rig.ask(item)).text for item in "12"] == ["", "4"]
    totals = rig.account.totals()
    assert (totals.failed, totals.cut_while_thinking) == (0, 1)
    run = tmp_path / "run"
    journal = new_journal(run)
    for each in rig.records:
        journal.call(each)
    journal.close()
    with RecordedRun(run) as recorded:
        assert [spent.totals.cut_while_thinking for spent in recorded.totals()] == [1]


async def test_an_answer_that_was_cut_is_an_answer() -> None:
    rig = Rig(Server(ChatReply("<think>a</think>The ans", USAGE, "length", "m")))
    assert (await rig.ask()).text == "The ans"
    assert rig.account.totals().cut_while_thinking == 0


async def test_the_cache_keeps_both(tmp_path: Path) -> None:
    async with open_cache(tmp_path / "cache.sqlite") as cache:
        first = await Rig(Server(THOUGHT), cache=cache).ask()
        again = await Rig(Server(), cache=cache).ask()
    assert again.cached
    assert (again.text, again.thinking) == (first.text, first.thinking) == ("4", "2 + 2")


async def test_a_reply_that_is_to_be_kept_whole_is_cached_apart(tmp_path: Path) -> None:
    async with open_cache(tmp_path / "cache.sqlite") as cache:
        await Rig(Server(THOUGHT), cache=cache).ask()
        assert (await Rig(Server(THOUGHT), keep=True, cache=cache).ask()).text == THOUGHT.text


async def test_the_journal_has_both_and_a_person_sees_both(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await record(run, [THOUGHT, ChatReply("5", USAGE)])
    with RecordedRun(run) as recorded:
        first, second = recorded.calls()
    assert (first.reply, first.thinking, second.reply, second.thinking) == ("4", "2 + 2", "5", None)
    assert first.answer is not None
    assert first.answer.thinking == "2 + 2"
    export(run, tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out" / "calls.jsonl").read_text().splitlines()]
    assert [(row["thinking"], row["reply"]) for row in rows] == [("2 + 2", "4"), (None, "5")]


async def test_a_journal_from_before_is_read_compacted_and_gone_on_with(tmp_path: Path) -> None:
    """Schema 3 had no column for thinking."""
    run = tmp_path / "run"
    await record(run, [ChatReply("5", USAGE)])
    make_older(run / JOURNAL)
    with RecordedRun(run) as recorded:
        assert recorded.schema == 3
        [call] = recorded.calls()
        assert (call.reply, call.thinking) == ("5", None)
        journal = Journal(run / JOURNAL, resume=True)
        assert [call] == list(recorded.calls())  # a reader that was there before reads on
    rig = Rig(Server(THOUGHT))
    await rig.ask("2")
    journal.call(rig.records[0])
    journal.close()
    with RecordedRun(run) as recorded:
        assert recorded.schema == 6
        assert [(call.reply, call.thinking) for call in recorded.calls()] == [("5", None), ("4", "2 + 2")]
    make_older(run / JOURNAL)
    assert compact(run).calls == 0
    with RecordedRun(run) as recorded:
        assert recorded.schema == 6


def new_journal(run: Path) -> Journal:
    run.mkdir()
    return Journal(run / JOURNAL)


def make_older(journal: Path) -> None:
    with closing(sqlite3.connect(journal)) as database:
        for column in ("thinking", "template", "checksum"):
            database.execute(f"ALTER TABLE calls DROP COLUMN {column}")
        for column in ("calls", "payload", "checksum"):
            database.execute(f"ALTER TABLE events DROP COLUMN {column}")
        database.execute("DELETE FROM meta WHERE key IN ('run', 'unchecked')")
        database.execute("UPDATE meta SET value = '3' WHERE key = 'schema'")
        database.commit()
    journal.with_suffix(".end").unlink()


async def test_calls_that_were_cut_are_counted_on_after_a_resume(tmp_path: Path) -> None:
    run = tmp_path / "run"
    journal = new_journal(run)
    rig = Rig(Server(ChatReply("<think>\nLet me", USAGE, "length", "m")))
    with pytest.raises(CutWhileThinkingError):
        await rig.ask()
    journal.call(rig.records[0])
    journal.close()
    with RecordedRun(run) as recorded:
        [spent] = recorded.totals()
    assert (spent.totals.failed, spent.totals.cut_while_thinking, spent.totals.usage) == (1, 1, USAGE)


async def record(run: Path, replies: Sequence[ChatReply]) -> None:
    """A run directory with these calls."""
    journal = new_journal(run)
    rig = Rig(Server(*replies))
    for number in range(len(replies)):
        await rig.ask(str(number))
    for each in rig.records:
        journal.call(each)
    journal.close()


async def test_a_run_that_goes_on_has_the_thinking_and_the_failures_that_were(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await record(run, [THOUGHT])
    journal = Journal(run / JOURNAL, resume=True)
    journal.event(Event(0, 0.0, "a", {}))
    cut = Rig(Server(ChatReply("<think>\nLet me", USAGE, "length", "m")))
    with pytest.raises(CutWhileThinkingError):
        await cut.ask("1")
    journal.call(cut.records[0])
    journal.close()
    history = RunHistory(RecordedRun(run))
    first, second = history.calls([("generate", "0"), ("generate", "1")])
    history.close()
    assert isinstance(first.reply, ChatReply)
    assert (first.reply.text, first.reply.thinking) == ("4", "2 + 2")
    assert isinstance(second.reply, CutWhileThinkingError)
    assert second.paid == ("m", USAGE)
