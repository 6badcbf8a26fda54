"""Servers on loopback that answer as an endpoint for chat does, and transports that are connected to them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import anyio
import pytest
from aiohttp import web
from anyio.abc import SocketStream

from flowevolve.core.model import ChatReply, ChatRequest, LLMError, Message
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport
from tests.support.http_transports import Kind

E = TypeVar("E", bound=LLMError)
Handle = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""Answers a request, or returns None where nobody waits for the answer any more."""
REQUEST = ChatRequest("m", (Message("user", "hello"),))


class StreamingOpenAITransport(OpenAITransport):
    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        return await super().chat(replace(request, stream=True), timeout=timeout)


class StreamingAioHTTPTransport(AioHTTPTransport):
    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        return await super().chat(replace(request, stream=True), timeout=timeout)


STREAMING: list[Kind] = [StreamingOpenAITransport, StreamingAioHTTPTransport]


def said(text: str) -> ChatRequest:
    return ChatRequest("m", (Message("user", text),))


# What a server answers


def answer(content: str | None = "hi", finish_reason: str | None = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {"model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}], **more}


def events(body: dict[str, Any]) -> str:
    """An answer as a stream: first the role, then the text in up to 50 parts, then the end, then usage."""
    choice = body["choices"][0] if body["choices"] else None
    chunks: list[dict[str, Any]] = [{"delta": {"role": "assistant"}}] if choice else []
    text = choice["message"]["content"] if choice else None
    if text is not None:
        size = 1 + len(text) // 50
        chunks += [{"delta": {"content": text[start : start + size]}} for start in range(0, len(text) + 1, size)]
    if choice:
        chunks.append({"delta": {}, "finish_reason": choice["finish_reason"]})
    told = [{"choices": [{"index": 0, **chunk}], "model": body["model"], "usage": None} for chunk in chunks]
    told.append({"choices": [], "model": body.get("model"), "usage": body.get("usage")})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in told) + "data: [DONE]\n\n"


def says(body: object, status: int = 200, **headers: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Answers with a body: an answer as a stream where the request asks for one."""

    async def handle(request: web.Request) -> web.Response:
        if isinstance(body, dict) and "choices" in body and await _wants_stream(request):
            text = events(body)
        else:
            text = body if isinstance(body, str) else json.dumps(body)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=text, headers={"Content-Type": "application/json", **names})

    return handle


async def _wants_stream(request: web.Request) -> bool:
    return request.can_read_body and b'"stream":true' in await request.read()


async def echo(request: web.Request) -> web.StreamResponse:
    """Answers with the last message."""
    return await says(answer((await request.json())["messages"][-1]["content"]))(request)


# Servers and transports


@asynccontextmanager
async def server(handle: Handle, port: int = 0) -> AsyncIterator[str]:
    """The address of a server on loopback that handles every request with ``handle``."""
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/v1/{rest:.*}", handle)  # type: ignore[arg-type]  # aiohttp's type has no None
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, backlog=512).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(
    make: Kind, url: str, api_key: str | None = None, max_connections: int = 4
) -> AsyncIterator[OpenAITransport | AioHTTPTransport]:
    transport = make(url, api_key, max_connections=max_connections)
    try:
        yield transport
    finally:
        await transport.aclose()


@asynccontextmanager
async def serving(
    make: Kind, handle: Handle, api_key: str | None = None, max_connections: int = 4
) -> AsyncIterator[OpenAITransport | AioHTTPTransport]:
    async with server(handle) as url, connected(make, url, api_key, max_connections) as transport:
        yield transport


@asynccontextmanager
async def raw_server(
    make: Kind, handle: Callable[[SocketStream], Awaitable[None]]
) -> AsyncIterator[OpenAITransport | AioHTTPTransport]:
    """A transport to a server that handles bare connections."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        async with connected(make, f"http://127.0.0.1:{port}/v1") as transport:
            yield transport
        tasks.cancel_scope.cancel()
    await listener.aclose()


async def chat(make: Kind, handle: Handle, request: ChatRequest = REQUEST, seconds: float = 60.0) -> ChatReply:
    async with serving(make, handle) as transport:
        return await transport.chat(request, timeout=seconds)


async def fails(error_class: type[E], call: Awaitable[object]) -> E:
    with pytest.raises(error_class) as caught:
        await call
    assert type(caught.value) is error_class
    return caught.value
