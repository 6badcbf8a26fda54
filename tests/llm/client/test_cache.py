"""The response cache: what it finds and what it must not, one call for two, several processes, files that are no cache."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import partial

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from flowevolve._util.errors import InputError, StorageError
from flowevolve._util.json_types import JSON
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.model import ChatReply, ChatRequest, Message, RejectedError, Usage
from flowevolve.llm.client import cache as cache_module
from flowevolve.llm.client.accounting import Account, Price, Totals
from flowevolve.llm.client.cache import ResponseCache, open_cache, reply_key
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.request_queue import QueuedRequest
from flowevolve.llm.scheduling.scheduler import Scheduler

pytestmark = pytest.mark.anyio

USAGE = Usage(100, 10, 40)
REQUEST = ChatRequest("m", (Message("user", "hello"),), temperature=0.7, max_tokens=9, seed=3, extra={"top_k": 1})


@pytest.fixture
async def cache(tmp_path):
    async with open_cache(tmp_path / "cache.sqlite") as cache:
        yield cache


class Server:
    """Numbers its replies; an entry of ``troubles`` is raised instead, once. A call takes a second."""

    def __init__(self, base_url="http://fake/v1") -> None:
        self.base_url = base_url
        self.requests: list[ChatRequest] = []
        self.troubles: list[Exception] = []

    async def chat(self, request, *, timeout):
        self.requests.append(request)
        number = len(self.requests)
        await anyio.sleep(1)
        if self.troubles:
            raise self.troubles.pop()
        told: JSON = {"content": [{"token": "\u2603", "logprob": -0.5}]} if request.extra.get("logprobs") else None
        return ChatReply(f"reply {number} \ud800", USAGE, "length", "m-2024", logprobs=told)

    async def models(self):
        return ("m",)

    async def aclose(self) -> None:
        pass


class Rig:
    """A client over one server, and what its observer saw."""

    def __init__(self, cache, server=None, limit=2, **settings) -> None:
        self.server = server or Server()
        self.records: list[CallRecord] = []
        self.scheduler = Scheduler(limit)
        self.client = LLMClient(
            {"task": Model(self.server, **{"name": "m", **settings})},
            self.scheduler,
            RetryPolicy(),
            7,
            self.records.append,
            Account({"m": Price(1, 1, 1)}),
            cache,
        )

    async def ask(self, text="hello", item="1", **options):
        scope = CallScope("generate", item, "c1", 3, 0)
        return await self.client.chat("task", [Message("user", text)], scope=scope, **options)


async def test_a_reply_is_found_again_whole_and_marked(cache) -> None:
    rig = Rig(cache)
    first = await rig.ask()
    assert await rig.ask() == replace(first, cached=True, dollars=0.0)
    assert (first.cached, first.text, len(rig.server.requests)) == (False, "reply 1 \ud800", 1)


async def test_log_probabilities_are_kept(cache) -> None:
    rig = Rig(cache, extra={"logprobs": True})
    first = await rig.ask()
    assert first.logprobs is not None
    assert await rig.ask() == replace(first, cached=True, dollars=0.0)


async def test_a_stream_answers_for_a_whole_and_the_other_way_round(cache) -> None:
    server = Server()
    for streams in (True, False):
        reply = await Rig(cache, server, stream=streams).ask()
    assert reply.cached


async def test_replies_outlive_the_process_that_kept_them(tmp_path) -> None:
    for _ in range(2):
        async with open_cache(tmp_path / "deep" / "cache.sqlite") as cache:
            reply = await Rig(cache).ask()
    assert reply.cached


async def test_a_hit_needs_no_slot_and_is_reported_and_counted_apart(cache) -> None:
    rig = Rig(cache, limit=1)
    paid = await rig.ask()
    spent = rig.client.account.totals()
    async with rig.scheduler.permit(QueuedRequest(0, "busy")):
        with anyio.fail_after(60):
            hit = await rig.ask()
    record = rig.records[-1]
    assert [each.cached for each in rig.records] == [False, True]
    assert (record.reply, record.error, record.attempts, record.scope.candidate) == (hit, None, 0, "c1")
    assert record.started == record.finished >= record.queued > 0
    assert (hit.usage, hit.paid, paid.paid) == (USAGE, Usage(), USAGE)
    totals = rig.client.account.totals()
    assert totals == spent + Totals(cached_calls=1, cached_calls_tokens=110)
    assert (totals.requests, totals.usage) == (1, USAGE)
    assert totals.dollars == pytest.approx(110e-6)
    assert rig.client.account.by_model() == {"m": totals}
    assert rig.client.response_times.take_sample().answered == 1


async def test_what_was_never_paid_for_needs_no_price(cache) -> None:
    await Rig(cache, name="unpriced").ask()
    again = Rig(cache, name="unpriced")
    await again.ask()
    assert again.client.account.totals() == Totals(cached_calls=1, cached_calls_tokens=110)


@pytest.mark.parametrize(
    "other",
    [
        {"server": Server("http://elsewhere/v1")},
        {"name": "n"},
        {"temperature": 0.1},
        {"max_tokens": 5},
        {"extra": {"top_k": 2}},
    ],
    ids=lambda other: next(iter(other)),
)
async def test_whatever_else_determines_a_reply_makes_another_one(cache, other) -> None:
    await Rig(cache).ask()
    assert not (await Rig(cache, **other).ask()).cached


async def test_other_words_or_another_seed_make_another_reply(cache) -> None:
    rig = Rig(cache)
    await rig.ask()
    assert not (await rig.ask("hello!")).cached
    assert not (await rig.ask(item="2")).cached
    assert not (await rig.ask(temperature=0.5)).cached
    assert not (await rig.ask(max_tokens=5)).cached


@pytest.mark.parametrize(
    "changed",
    [
        {"stop": ("END",)},
        {"seed": 4},
        {"messages": (Message("system", "hello"),)},
        {"messages": (Message("user", "hel"), Message("user", "lo"))},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_every_part_of_the_request_is_in_the_key(changed) -> None:
    assert reply_key("b", REQUEST) != reply_key("b", replace(REQUEST, **changed))


def test_what_changes_no_reply_is_not_in_the_key() -> None:
    swapped: tuple[dict[str, JSON], dict[str, JSON]] = {"b": 1, "a": {"d": 2, "c": 3}}, {"a": {"c": 3, "d": 2}, "b": 1}
    keys = {reply_key("b", replace(REQUEST, temperature=0, priority=n, extra=swapped[n])) for n in range(2)}
    keys.add(reply_key("b", replace(REQUEST, temperature=0.0, extra=swapped[0])))
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"seed": None}, False),
        ({"seed": None, "temperature": None}, False),
        ({"seed": None, "temperature": 0.0}, True),
        ({"seed": None, "temperature": 0.0, "extra": {"temperature": 1.0}}, False),
        ({"seed": None, "extra": {"seed": 5}}, True),
        ({"seed": 0, "temperature": None}, True),
    ],
    ids=str,
)
def test_only_repeatable_requests_have_a_key(settings, kept) -> None:
    assert (reply_key("b", replace(REQUEST, **settings)) is not None) == kept


async def test_unrepeatable_requests_are_answered_anew(cache) -> None:
    rig = Rig(cache, send_seed=False)
    assert [(await rig.ask()).text[:7] for _ in range(2)] == ["reply 1", "reply 2"]
    assert rig.client.account.totals().cached_calls == 0


async def test_failures_are_not_kept(cache) -> None:
    rig = Rig(cache)
    rig.server.troubles = [RejectedError("no")]
    with pytest.raises(RejectedError):
        await rig.ask()
    assert not (await rig.ask()).cached


# Identical calls at once


async def test_identical_calls_under_way_are_paid_for_once(cache) -> None:
    rig = Rig(cache)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(rig.ask)
        tasks.start_soon(partial(rig.ask, item="another"))
    assert len(rig.server.requests) == 2
    assert sorted(record.cached for record in rig.records) == [False, False, True, True, True, True]


@pytest.mark.parametrize("cancelled", [0, 1], ids=["the one that calls", "the one that waits"])
async def test_whoever_is_cancelled_the_others_get_their_reply_from_one_call(cache, cancelled) -> None:
    rig = Rig(cache)
    scopes = [anyio.CancelScope() for _ in range(3)]
    replies: dict[int, ChatReply] = {}

    async def ask(number) -> None:
        with scopes[number]:
            replies[number] = await rig.ask()

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(ask, number)
            await anyio.sleep(0.1)
        scopes[cancelled].cancel()
    assert {number: reply.cached for number, reply in replies.items()} == (
        {1: False, 2: True} if cancelled == 0 else {0: False, 2: True}
    )
    assert len(rig.server.requests) == (2 if cancelled == 0 else 1)
    assert rig.scheduler.stats().in_flight == 0


async def test_a_call_cancelled_while_it_is_looked_up_was_never_sent_and_holds_up_nobody(cache) -> None:
    rig = Rig(cache)
    scopes = [anyio.CancelScope() for _ in range(4)]

    async def ask(number) -> None:
        with scopes[number]:
            await rig.ask(item=str(number))

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(ask, number)
        await anyio.lowlevel.checkpoint()
        for number in (0, 1, 2):  # looked up alone, first and second of the next look
            scopes[number].cancel()
    assert [record.scope.item for record in rig.records] == ["3"]
    assert (len(rig.server.requests), rig.client.cancelled) == (1, 0)


async def test_if_the_first_fails_the_second_makes_the_call_itself(cache) -> None:
    rig = Rig(cache)
    rig.server.troubles = [RejectedError("no")]
    outcomes: list[bool | str] = []

    async def ask() -> None:
        try:
            outcomes.append((await rig.ask()).cached)
        except RejectedError as error:
            outcomes.append(str(error))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(ask)
    assert outcomes == ["no", False, True]
    assert len(rig.server.requests) == 2


# The file


async def test_what_another_holder_of_the_file_keeps_is_found(tmp_path) -> None:
    path, key = tmp_path / "cache.sqlite", reply_key("b", REQUEST)
    assert key is not None
    async with open_cache(path) as mine:
        async with open_cache(path) as theirs:
            theirs.keep(key, ChatReply("theirs"))
        async with mine.single_flight(key) as known:
            assert known == ChatReply("theirs", cached=True, dollars=0.0)
        mine.keep(key, ChatReply("mine"))  # made at the same time: the first one on disk stays
    async with open_cache(path) as later, later.single_flight(key) as known:
        assert known is not None
        assert known.text == "theirs"


PROCESS = """
import sys
from pathlib import Path
from flowevolve.llm.client.cache import ResponseCache
from flowevolve.core.model import ChatReply

print("ready", flush=True)
sys.stdin.readline()
cache = ResponseCache(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 3000):
    cache.keep(number.to_bytes(32, "big"), ChatReply(f"reply {number}"))
cache.close()
"""


def test_processes_that_start_and_write_at_once_lose_nothing(tmp_path) -> None:
    path = tmp_path / "cache.sqlite"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(path), str(first)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for first in (0, 1500)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT key, reply FROM replies ORDER BY key").fetchall()
    database.close()
    assert [int.from_bytes(key, "big") for key, _ in rows] == list(range(4500))
    assert [json.loads(reply)[0] for _, reply in rows] == [f"reply {number}" for number in range(4500)]
    assert [each.name for each in tmp_path.iterdir()] == ["cache.sqlite"]


def sqlite_file(path, *statements) -> None:
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


HEADER = f"PRAGMA application_id={cache_module.APPLICATION_ID}"
VERSION = f"PRAGMA user_version={cache_module.SCHEMA_VERSION}"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_bytes(b"\x00garbage" * 1000), "not a database"),
        (lambda path: path.write_bytes(b""), "another kind of file"),
        (lambda path: sqlite_file(path, "CREATE TABLE replies (key, reply)"), "another kind of file"),
        (lambda path: sqlite_file(path, HEADER, "PRAGMA user_version=99"), "schema 99"),
        (lambda path: sqlite_file(path, HEADER, VERSION), "no such table"),
        (lambda path: path.mkdir(), "unable to open"),
        (lambda path: path.parent.joinpath("file").write_bytes(b""), "cache.sqlite"),
    ],
    ids=["garbage", "empty", "another database", "another schema", "no table", "a directory", "below a file"],
)
def test_a_file_that_is_no_cache_is_refused_with_a_way_out(tmp_path, make, says) -> None:
    path = tmp_path / "cache.sqlite"
    make(path)
    if not path.exists():
        path = tmp_path / "file" / "cache.sqlite"  # below something that is not a folder
    with pytest.raises(InputError, match=rf"{says}.*name another file in llm\.cache\.path, or remove this one"):
        ResponseCache(path)


@pytest.mark.parametrize("damaged", ["nonsense", "[1, [2], 3, 4]", '["no usage"]', b"\xff\xfe"])
async def test_damage_that_shows_later_is_the_same_error(tmp_path, damaged) -> None:
    path = tmp_path / "cache.sqlite"
    async with open_cache(path) as cache:
        await Rig(cache).ask()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE replies SET reply = ?", (damaged,))
    database.close()
    async with open_cache(path) as cache:
        with pytest.raises(InputError, match=r"cache\.sqlite: can't be used.*remove this one"):
            await Rig(cache).ask()


@pytest.fixture
def locked_cache(tmp_path, monkeypatch):
    """The file of a cache that another process writes to all the time."""
    monkeypatch.setattr(cache_module, "BUSY_SECONDS", 0)
    path = tmp_path / "cache.sqlite"
    ResponseCache(path).close()
    with closing(sqlite3.connect(path)) as other:
        yield path, other


def lock(other) -> None:
    other.execute("BEGIN IMMEDIATE")


def test_replies_that_could_not_be_kept_are_not_kept_quiet(locked_cache) -> None:
    path, other = locked_cache
    cache = ResponseCache(path)
    lock(other)
    cache.keep(b"key", ChatReply("x"))
    with pytest.raises(StorageError, match="not all replies could be kept"):
        cache.close()


async def test_replies_that_could_not_be_kept_do_not_take_a_result_with_them(locked_cache) -> None:
    path, other = locked_cache
    with capture_logs() as logs:
        async with open_cache(path) as cache:
            lock(other)
            cache.keep(b"key", ChatReply("x"))
    assert [(log["event"], log["log_level"]) for log in logs] == [("cache.not_kept", "warning")]
    assert "not all replies could be kept" in logs[0]["why"]


async def test_replies_that_could_not_be_kept_do_not_hide_why_a_run_failed(locked_cache) -> None:
    path, other = locked_cache

    async def fail() -> None:
        async with open_cache(path) as cache:
            lock(other)
            cache.keep(b"key", ChatReply("x"))
            raise InputError("no such role")

    with pytest.raises(InputError, match="no such role"):
        await fail()
