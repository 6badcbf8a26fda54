"""What a server may send is bounded, however it sends it: at once, in pieces, packed, as an error, for ever."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web
from hypothesis import given, strategies as st

from flowevolve._util.json_types import JSON
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    LLMError,
    Message,
    RejectedError,
    ServerError,
    Usage,
)
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.bounded import ReplyBound, bounded, unpacked
from flowevolve.llm.transports.openai import OpenAITransport
from tests.support.http_transports import Kind
from tests.support.loopback import answer, server

pytestmark = pytest.mark.anyio

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MOST = 2**20


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def connected(kind: Kind, handle: Handler, most: int = MOST) -> AsyncIterator[OpenAITransport | AioHTTPTransport]:
    async with server(handle) as url:
        transport = kind(url, None, max_connections=4, max_reply_bytes=most)
        try:
            yield transport
        finally:
            await transport.aclose()


def request(*, stream: bool = False) -> ChatRequest:
    return ChatRequest("m", (Message("user", "hello"),), stream=stream)


def bomb(gigabytes: int) -> bytes:
    """A gzip body that opens to so many gigabytes of spaces. A block that was flushed whole can be repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = packer.compress(b" " * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * (1024 * gigabytes - 1)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_small_body_that_opens_to_gigabytes_is_given_up_at_the_bound(kind: Kind, stream: bool) -> None:
    body = bomb(4)
    assert len(body) < 8 * 2**20

    async def explode(_: web.Request) -> web.Response:
        return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})

    async with connected(kind, explode) as transport:
        tracemalloc.start()
        with pytest.raises(RejectedError, match=f"longer than {MOST} bytes: raise llm.max_reply_bytes"):
            await transport.chat(request(stream=stream), timeout=600)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 16 * 2**20


async def test_others_have_their_turns_while_a_body_is_unpacked() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async def body() -> AsyncIterator[bytes]:
        yield bomb(1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        with pytest.raises(RejectedError):
            async for _ in bounded(body(), "gzip", ReplyBound(2**25)):
                pass
        tasks.cancel_scope.cancel()
    assert turns >= 2**25 // 2**18


def endless(status: int = 200, piece: bytes = b" " * 2**16, headers: dict[str, str] | None = None) -> Handler:
    async def handle(asked: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers=headers or {})
        await response.prepare(asked)
        while True:
            await response.write(piece)

    return handle


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("piece", [b" " * 2**16, b'data: {"choices": []}\n\n' * 1000, b"data: " + b"a" * 2**16])
async def test_a_body_without_an_end_is_given_up(kind: Kind, piece: bytes, stream: bool) -> None:
    async with connected(kind, endless(piece=piece)) as transport:
        with pytest.raises(RejectedError, match="longer than"):
            await transport.chat(request(stream=stream), timeout=600)


@pytest.mark.parametrize("stream", [False, True])
async def test_of_an_error_only_the_beginning_is_read(kind: Kind, stream: bool) -> None:
    async with connected(kind, endless(status=500, piece=b"out of order " * 1000)) as transport:
        with pytest.raises(ServerError, match="HTTP 500: out of order"):
            await transport.chat(request(stream=stream), timeout=600)


@pytest.mark.parametrize("header", ["X-Long", "Retry-After"])
async def test_headers_are_bounded_too(kind: Kind, header: str) -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(text="{}", headers={header: "7" * 2**20})

    async with connected(kind, handle) as transport:
        with pytest.raises(LLMError):
            await transport.chat(request(), timeout=600)


async def test_a_body_that_is_nested_without_end_is_no_answer(kind: Kind) -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(text='{"choices": ' + "[" * 100_000)

    async with connected(kind, handle) as transport:
        with pytest.raises(ServerError, match="nested too deeply"):
            await transport.chat(request(), timeout=600)


async def test_a_list_of_models_is_bounded_as_configured(kind: Kind) -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=b'{"data": [{"id": "m"}], "more": [' + b"1," * (2**21) + b"1]}")

    async with connected(kind, handle) as transport:
        with pytest.raises(RejectedError):
            await transport.models()
    async with connected(kind, handle, ReplyBound().most_bytes) as transport:
        with pytest.raises(RejectedError, match=r"more than 2097152 values: raise llm\.max_reply_bytes"):
            await transport.models()
    async with connected(kind, handle, 2 * ReplyBound().most_bytes) as transport:
        assert await transport.models() == ("m",)


@pytest.mark.parametrize("innermost", [[], -0.5], ids=["empty", "number"])
def test_logprobs_may_be_nested_as_deeply_as_is_said_and_no_deeper(innermost: JSON) -> None:
    lists = 63 if innermost == [] else 64
    ReplyBound().check_reply(ChatReply("yes", Usage(1, 1), logprobs=nested(innermost, lists)))
    with pytest.raises(RejectedError, match="more than 64 lists and objects inside each other"):
        ReplyBound().check_reply(ChatReply("yes", Usage(1, 1), logprobs=nested(innermost, lists + 1)))


def nested(value: JSON, times: int) -> JSON:
    for _ in range(times):
        value = [value]
    return value


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "GZip": lambda body: gzip.compress(body[:9]) + gzip.compress(b"") + gzip.compress(body[9:]),
    "deflate": zlib.compress,
    "Deflate": lambda body: zlib.compress(body, wbits=-15),
    "identity": bytes,
}


@pytest.mark.parametrize("encoding", PACKED)
async def test_what_is_packed_as_asked_is_read(kind: Kind, encoding: str) -> None:
    body = PACKED[encoding](json.dumps(answer("☃" * 1000)).encode())

    async def handle(asked: web.Request) -> web.Response:
        assert asked.headers["Accept-Encoding"] == "gzip, deflate"
        return web.Response(body=body, headers={"Content-Encoding": encoding, "Content-Type": "application/json"})

    async with connected(kind, handle) as transport:
        assert (await transport.chat(request(), timeout=60)).text == "☃" * 1000


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "gzip"])
async def test_what_is_packed_otherwise_is_no_answer(kind: Kind, encoding: str) -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=b"hello", headers={"Content-Encoding": encoding, "Content-Type": "application/json"})

    async with connected(kind, handle) as transport:
        with pytest.raises(ServerError):
            await transport.chat(request(), timeout=60)


@given(st.binary(max_size=3000), st.integers(1, 50), st.sampled_from(sorted(PACKED)))
def test_wherever_it_is_cut_it_is_the_same_body(body: bytes, size: int, encoding: str) -> None:
    packed = PACKED[encoding](body)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(packed), size):
            yield packed[start : start + size]

    async def read() -> bytes:
        return b"".join([piece async for piece in unpacked(pieces(), encoding)])

    assert anyio.run(read) == body
