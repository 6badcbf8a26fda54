"""A server that wants to fill our memory or to hold us up gets a clear error, whatever it was asked for."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from flowevolve.core.model import ChatReply, ChatRequest, EmbedRequest, Message, RejectedError, UnreachableError, Usage
from flowevolve.llm.client.thoughts import without_thinking
from flowevolve.llm.transports import sse, wire
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.bounded import ReplyBound
from flowevolve.llm.transports.openai import OpenAITransport
from tests.support.hostile_replies import LONG_TEXTS, MOST, REPLIES, HostileReply, answering
from tests.support.http_transports import Kind

pytestmark = pytest.mark.anyio

Ask = Callable[[OpenAITransport | AioHTTPTransport], Awaitable[object]]
SECONDS = 60.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def chat(*, stream: bool) -> ChatRequest:
    return ChatRequest("m", (Message("user", "hello"),), stream=stream)


WHOLE: list[Ask] = [
    lambda transport: transport.chat(chat(stream=False), timeout=SECONDS),
    lambda transport: transport.embed(EmbedRequest("m", ("hello",)), timeout=SECONDS),
    lambda transport: transport.models(),
]


async def ask_streamed(transport: OpenAITransport | AioHTTPTransport) -> object:
    return await transport.chat(chat(stream=True), timeout=SECONDS)


async def check(kind: Kind, reply: HostileReply, whole: list[Ask]) -> None:
    async with answering(reply.pieces) as url:
        transport = kind(url, None, max_connections=1, max_reply_bytes=MOST)
        try:
            for ask in whole:
                with pytest.raises(reply.error, match=reply.says):
                    await ask(transport)
            error, says = reply.streamed or (reply.error, reply.says)
            with pytest.raises(error, match=says):
                await ask_streamed(transport)
        finally:
            await transport.aclose()


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply.name)
async def test_an_answer_that_is_too_much_is_a_clear_error(kind: Kind, reply: HostileReply) -> None:
    await check(kind, reply, WHOLE)


@pytest.mark.parametrize("reply", LONG_TEXTS, ids=lambda reply: reply.name)
async def test_a_chat_that_is_too_much_is_a_clear_error(kind: Kind, reply: HostileReply) -> None:
    await check(kind, reply, WHOLE[:1])


@pytest.mark.parametrize("name", ["packed lines", "small objects"])
async def test_it_takes_no_more_memory_than_a_small_multiple_of_the_bound(kind: Kind, name: str) -> None:
    [reply] = [reply for reply in REPLIES if reply.name == name]
    tracemalloc.start()
    try:
        await check(kind, reply, WHOLE[:1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MOST


async def turns_during(work: Callable[[], Awaitable[object]]) -> int:
    """How often another task had its turn meanwhile."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        await work()
        tasks.cancel_scope.cancel()
    return turns


EVENTS = b"data: {}\n\n" * 10**4


async def at_once() -> AsyncIterator[bytes]:
    yield EVENTS


async def test_others_have_their_turns_while_a_stream_is_read() -> None:
    async def read() -> None:
        with pytest.raises(UnreachableError):
            await sse.read_reply(at_once(), chat(stream=True))

    assert await turns_during(read) >= len(EVENTS) // 2**14


async def test_others_have_their_turns_while_thoughts_are_taken_out_of_a_long_text() -> None:
    async def take() -> None:
        assert (await without_thinking(ChatReply("<think>" * 2**15 + "</think>yes"))).text == "yes"

    assert await turns_during(take) >= 3


async def test_a_server_is_not_silent_while_we_read_what_it_sent() -> None:
    with pytest.raises(UnreachableError, match="closed the connection before its end"):
        await sse.read_reply(at_once(), ChatRequest("m", (), stream=True, idle_seconds=1e-9))


def test_the_longest_that_models_write_is_taken() -> None:
    """128,000 tokens."""
    written = b"word " * 128_000
    assert len(wire.chat_reply(b'{"choices":[{"message":{"content":"%s"}}]}' % written, "m").text) == len(written)


def test_who_allows_more_bytes_allows_longer_texts() -> None:
    reply = ChatReply("a" * (ReplyBound().most_parts + 1), Usage(1, 2))
    with pytest.raises(RejectedError, match=r"2097152 characters: raise llm\.max_reply_bytes") as caught:
        ReplyBound().check_reply(reply)
    assert caught.value.usage == Usage(1, 2)
    ReplyBound(2**26).check_reply(reply)
