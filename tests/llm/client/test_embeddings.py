"""Embeddings: what is sent and accepted, over both transports, and how the client makes, counts and reports calls."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp import web

from flowevolve._util.errors import BackendRefusedError, InputError
from flowevolve._util.json_types import JSON
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.model import ChatReply, ChatRequest, EmbedReply, EmbedRequest, RejectedError, ServerError, Usage
from flowevolve.experience.hashing import hashed_embedding
from flowevolve.llm.client.accounting import Account, Price
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.ensemble import Ensemble
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.client.role import Role
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport
from flowevolve.llm.transports.wire import embed_reply
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.server import serve
from flowevolve.sim.worlds.rules.world import RulesWorld

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The real clock, because servers on loopback answer."""
    return "asyncio"


REQUEST = EmbedRequest("e", ("one", "two"))
MAKERS = [OpenAITransport, AioHTTPTransport]
Maker = type[OpenAITransport] | type[AioHTTPTransport]


def answer(*entries: JSON, **more: JSON) -> bytes:
    return json.dumps({"data": list(entries), **more}).encode()


# What is accepted


def test_vectors_come_in_the_order_of_the_texts() -> None:
    content = answer(
        {"index": 1, "embedding": [0, 2.5]},
        {"index": 0, "embedding": [1, 0]},
        model="e-1",
        usage={"prompt_tokens": 7, "total_tokens": 7},
    )
    assert embed_reply(content, REQUEST) == EmbedReply(((1, 0), (0, 2.5)), Usage(7), "e-1")


def test_what_is_left_out_is_made_up_for() -> None:
    content = answer({"embedding": [1.0]}, {"embedding": [2.0]})
    assert embed_reply(content, REQUEST) == EmbedReply(((1.0,), (2.0,)), Usage(), "e")


@pytest.mark.parametrize(
    "content",
    [
        b"<html>",
        b"[]",
        answer(),
        answer({"embedding": [1.0]}),
        answer({"embedding": [1.0]}, {"embedding": [1.0, 2.0]}),
        answer({"embedding": []}, {"embedding": []}),
        answer({"embedding": ["x"]}, {"embedding": ["y"]}),
        answer({"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}),
        answer({"index": 0, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}),
        answer(1, 2),
    ],
)
def test_a_body_that_is_no_answer(content: bytes) -> None:
    with pytest.raises(ServerError):
        embed_reply(content, REQUEST)


# Over the wire


@asynccontextmanager
async def serving(handle: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/embeddings", handle)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("make", MAKERS)
async def test_what_is_sent(make: Maker) -> None:
    seen: list[tuple[str | None, object]] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append((request.headers.get("Authorization"), await request.json()))
        return web.json_response({"data": [{"embedding": [1.0]}, {"embedding": [2.0]}]})

    async with serving(handle) as url:
        transport = make(url, "a key", max_connections=1)
        reply = await transport.embed(EmbedRequest("e", ("one", "two"), {"dimensions": 1}), timeout=60)
        await transport.aclose()
    assert reply.vectors == ((1.0,), (2.0,))
    assert seen == [("Bearer a key", {"model": "e", "input": ["one", "two"], "dimensions": 1})]


@pytest.mark.parametrize("make", MAKERS)
async def test_a_status_that_says_no(make: Maker) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "too long"}}, status=400)

    async with serving(handle) as url:
        transport = make(url, None, max_connections=1)
        with pytest.raises(RejectedError, match="HTTP 400: too long"):
            await transport.embed(REQUEST, timeout=60)
        await transport.aclose()


@pytest.mark.parametrize("make", MAKERS)
async def test_the_simulated_server_makes_embeddings(make: Maker) -> None:
    async with serve(SimBackend(RulesWorld(), PROFILES["instant"], model="e")) as url:
        transport = make(url, None, max_connections=1)
        reply = await transport.embed(REQUEST, timeout=60)
        with pytest.raises(RejectedError, match="input must be a text"):
            await transport.embed(EmbedRequest("e", ()), timeout=60)
        await transport.aclose()
    assert reply == EmbedReply((hashed_embedding("one"), hashed_embedding("two")), Usage(2), "e")


# Through the client


class Embeddings:
    """Embeds a text as its length."""

    base_url = "http://fake/v1"

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.requests: list[EmbedRequest] = []

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        raise AssertionError("this is no chat")

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        self.requests.append(request)
        if self.failures:
            raise self.failures.pop(0)
        return EmbedReply(tuple((float(len(text)),) for text in request.texts), Usage(10 * len(request.texts)))

    async def models(self) -> tuple[str, ...]:
        return ("e",)

    async def aclose(self) -> None:
        pass


class ChatOnly:
    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        return ChatReply("fine")

    async def models(self) -> tuple[str, ...]:
        return ("e",)

    async def aclose(self) -> None:
        pass


SCOPE = CallScope("shift", "3.0", "c1", 0, 2)


async def embed(role: Role, texts: Sequence[str]) -> tuple[EmbedReply, list[CallRecord], LLMClient]:
    records: list[CallRecord] = []
    retry = RetryPolicy(base_seconds=0.001, max_seconds=0.001)
    client = LLMClient({"embedding": role}, Scheduler(4), retry, 7, records.append, Account({"e": Price(2, 2, 0)}))
    return await client.embed("embedding", texts, scope=SCOPE), records, client


async def test_a_call_is_retried_accounted_and_reported() -> None:
    server = Embeddings(ServerError("500"))
    reply, [record], client = await embed(Model(server, "e", extra={"dimensions": 1}), ["a", "bb"])
    assert (reply.vectors, reply.usage) == (((1.0,), (2.0,)), Usage(20))
    assert reply.dollars == pytest.approx(40e-6)
    assert (record.role, record.scope, record.attempts, record.error) == ("embedding", SCOPE, 2, None)
    assert record.request == EmbedRequest("e", ("a", "bb"), {"dimensions": 1})
    assert record.reply is not None
    assert json.loads(record.reply.text) == [[1.0], [2.0]]
    totals = client.account.totals()
    assert (totals.requests, totals.retries, totals.usage) == (1, 1, Usage(20))
    assert totals.dollars == pytest.approx(40e-6)


async def test_tokens_that_are_not_told_are_estimated() -> None:
    class Silent(Embeddings):
        async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
            return replace(await super().embed(request, timeout=timeout), usage=Usage())

    reply, _, client = await embed(Model(Silent(), "e"), ["12345678", "9"])
    assert (reply.usage, reply.estimated, client.account.totals().estimated) == (Usage(3), True, 1)


async def test_vectors_of_several_models_cannot_be_compared() -> None:
    with pytest.raises(InputError, match=r"'embedding' has several models.*give it one"):
        await embed(Ensemble([Model(Embeddings(), "e"), Model(Embeddings(), "f")], [1, 1]), ["a"])


async def test_a_backend_that_makes_none_is_named() -> None:
    with pytest.raises(BackendRefusedError, match=r"ChatOnly: model 'e' is refused: .* makes no embeddings"):
        await embed(Model(ChatOnly(), "e"), ["a"])
