"""Azure's form of the API, against a server on loopback that has no other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from flowevolve.core.model import ChatRequest, EmbedRequest, Message, RefusedError
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport
from tests.support.http_transports import Kind
from tests.support.loopback import answer, events

pytestmark = pytest.mark.anyio

VERSION, KEY = "2024-10-21", "azure-key-0123456789"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@web.middleware
async def only_azures_form(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Turns away whatever lacks the version or the key, or has the key where OpenAI has it."""
    if request.query.get("api-version") != VERSION:
        return web.json_response({"error": {"code": "404", "message": "Resource not found"}}, status=404)
    if request.headers.get("api-key") != KEY or "Authorization" in request.headers:
        return web.json_response({"error": {"code": "401", "message": "Access denied"}}, status=401)
    return await handler(request)


async def chat(request: web.Request) -> web.Response:
    body = await request.json()
    told = answer(request.match_info["deployment"], usage={"prompt_tokens": 9, "completion_tokens": 4})
    return web.Response(text=events(told) if body.get("stream") else json.dumps(told))


async def embeddings(request: web.Request) -> web.Response:
    return web.json_response({"data": [{"index": 0, "embedding": [1.0, 2.0]}], "usage": {"prompt_tokens": 3}})


async def models(request: web.Request) -> web.Response:
    return web.json_response({"data": [{"id": "gpt-4.1"}]})


@asynccontextmanager
async def azure() -> AsyncIterator[str]:
    """The endpoint of the resource."""
    app = web.Application(middlewares=[only_azures_form])
    app.router.add_post("/openai/deployments/{deployment}/chat/completions", chat)
    app.router.add_post("/openai/deployments/{deployment}/embeddings", embeddings)
    app.router.add_get("/openai/models", models)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(
    kind: Kind, key: str | None = KEY, after: str = ""
) -> AsyncIterator[OpenAITransport | AioHTTPTransport]:
    async with azure() as endpoint:
        transport = kind(endpoint + after, key, max_connections=4, azure_api_version=VERSION)
        try:
            yield transport
        finally:
            await transport.aclose()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("after", ["", "/", "/openai", "/openai/"])
async def test_the_model_is_a_deployment_in_the_path(kind: Kind, after: str, stream: bool) -> None:
    async with connected(kind, after=after) as transport:
        asked = ChatRequest("my deployment/1", (Message("user", "hello"),), stream=stream)
        assert (await transport.chat(asked, timeout=60)).text == "my deployment/1"


async def test_embeddings_and_models_are_asked_so_too(kind: Kind) -> None:
    async with connected(kind) as transport:
        assert (await transport.embed(EmbedRequest("d", ("a",)), timeout=60)).vectors == ((1.0, 2.0),)
        assert await transport.models() == ("gpt-4.1",)


@pytest.mark.parametrize("key", [None, "another-key-0123456789"])
async def test_a_wrong_key_is_refused(kind: Kind, key: str | None) -> None:
    async with connected(kind, key) as transport:
        with pytest.raises(RefusedError, match="Access denied"):
            await transport.chat(ChatRequest("d", (Message("user", "hello"),)), timeout=60)
