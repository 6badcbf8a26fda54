"""Requests that are written onto aiohttp's connections look as its own session would have sent them."""

from __future__ import annotations

import json

import anyio
import anyio.abc
import pytest
from aiohttp import web

from flowevolve.core.model import ChatRequest, Message, RejectedError
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from tests.support.loopback import answer, raw_server, server

pytestmark = pytest.mark.anyio

REQUEST = ChatRequest("m", (Message("user", "hello"),))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Listener:
    """Answers, and notes the heads of what it is asked and over which connections."""

    def __init__(self) -> None:
        self.heads: list[dict[str, str]] = []
        self.connections: set[object] = set()

    async def handle(self, asked: web.Request) -> web.Response:
        self.heads.append({"target": asked.raw_path, **asked.headers})
        self.connections.add(asked.transport)
        return web.json_response(answer("hi"))


async def test_every_request_has_all_headers_and_the_length_of_its_own_body() -> None:
    listener = Listener()
    async with server(listener.handle) as url:
        transport = AioHTTPTransport(url, "sk-0123456789", max_connections=2, headers={"X-Run": "seven"})
        for text in ("short", "somewhat longer", "☃" * 2**19):
            await transport.chat(ChatRequest("m", (Message("user", text),)), timeout=60)
        await transport.aclose()
    *sizes, _ = (int(head.pop("Content-Length")) for head in listener.heads)
    assert sizes[0] < sizes[1]
    first, *others = listener.heads
    assert others == [first, first]
    assert first["target"] == "/v1/chat/completions"
    assert first["Host"] == url.removeprefix("http://").removesuffix("/v1")
    assert (first["X-Run"], first["Authorization"]) == ("seven", "Bearer sk-0123456789")
    assert len(listener.connections) == 1


async def test_a_header_with_a_line_break_is_not_sent() -> None:
    listener = Listener()
    async with server(listener.handle) as url:
        transport = AioHTTPTransport(url, None, max_connections=1, headers={"X-Run": "a\r\nX-Other: b"})
        for _ in range(2):
            with pytest.raises(RejectedError, match="a line break, or another control character, in a header"):
                await transport.chat(REQUEST, timeout=60)
        await transport.aclose()
    assert listener.heads == []


async def test_a_request_is_sent_on_within_the_server_with_its_body_or_for_a_page() -> None:
    listener = Listener()
    for status, method in ((307, "POST"), (302, "GET")):

        async def move(asked: web.Request, status: int = status, method: str = method) -> web.Response:
            if asked.path == "/v1/there":
                assert asked.method == method
                return await listener.handle(asked)
            return web.Response(status=status, headers={"Location": "../there"})

        async with server(move) as url:
            transport = AioHTTPTransport(url, None, max_connections=1)
            for _ in range(2):
                assert (await transport.chat(REQUEST, timeout=60)).text == "hi"
            await transport.aclose()
    assert len(listener.heads) == 4


async def test_a_connection_whose_server_did_not_take_the_whole_request_is_not_used_again() -> None:
    body = json.dumps(answer("hi")).encode()
    done = anyio.Event()

    async def refuse_the_large(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            start = await stream.receive()
            if b"Content-Length: 8" not in start:
                await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
                return
            await stream.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
            await done.wait()

    async with raw_server(AioHTTPTransport, refuse_the_large) as transport:
        with pytest.raises(RejectedError, match="413"):
            await transport.chat(ChatRequest("m", (Message("user", "x" * 8_000_000),)), timeout=60)
        assert (await transport.chat(REQUEST, timeout=10)).text == "hi"
        done.set()
