"""The gateway over HTTP: what a run sends reaches the server, and what comes back reaches the run."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import anyio
import pytest
from aiohttp import ClientSession
from openai import AsyncOpenAI, omit

from flowevolve._util.json_types import JSON
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    Message,
    OutOfCreditError,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    UnreachableError,
    Usage,
)
from flowevolve.gateway.gateway import RETRY_SECONDS, Gateway
from flowevolve.gateway.server import serve
from flowevolve.llm.scheduling.metrics_probe import parse_load
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport
from flowevolve.llm.transports.sender import Sender
from tests.support.http_transports import KINDS, Kind

pytestmark = pytest.mark.anyio

REQUEST = ChatRequest(
    "m",
    (Message("system", "be brief"), Message("user", "hello \N{SNOWMAN}")),
    temperature=0.5,
    max_tokens=77,
    seed=3,
    stop=("END",),
    priority=1002,
    extra={"top_p": 0.9, "chat_template_kwargs": {"enable_thinking": False}},
)
LOGPROBS: JSON = {"content": [{"token": "a", "logprob": -0.5}]}
REPLY = ChatReply("an answer", Usage(9, 4, 5), "length", "m-2026", thinking="well", logprobs=LOGPROBS)
SENDER = Sender("run-a", share=2.0, priority=-1)


@dataclass
class Server:
    """A transport that answers or fails as it is told."""

    reply: ChatReply = REPLY
    failure: LLMError | None = None
    asked: list[ChatRequest] = field(default_factory=list)
    hangs: bool = False
    began: anyio.Event = field(default_factory=anyio.Event)
    was_cancelled: anyio.Event = field(default_factory=anyio.Event)

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        self.asked.append(request)
        if self.failure is not None:
            raise self.failure
        self.began.set()
        try:
            while self.hangs:
                await anyio.sleep_forever()
        except BaseException:
            self.was_cancelled.set()
            raise
        return self.reply

    async def models(self) -> tuple[str, ...]:
        if self.failure is not None:
            raise self.failure
        return ("m", "other")

    async def aclose(self) -> None:
        pass


@asynccontextmanager
async def served(server: Server) -> AsyncGenerator[tuple[Gateway, str]]:
    """A gateway in front of this server, and its address."""
    gateway = Gateway(server, 4)
    async with serve(gateway) as url:
        yield gateway, url


@asynccontextmanager
async def asking(url: str, kind: Kind = AioHTTPTransport) -> AsyncGenerator[OpenAITransport | AioHTTPTransport]:
    """A run's transport."""
    transport = kind(url, None, max_connections=8, headers=SENDER.headers())
    try:
        yield transport
    finally:
        await transport.aclose()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True])
async def test_requests_and_answers_pass_through_whole(kind: Kind, stream: bool) -> None:
    server = Server()
    async with served(server) as (gateway, url), asking(url, kind) as transport:
        reply = await transport.chat(replace(REQUEST, stream=stream), timeout=20)
        assert reply == REPLY
        assert [replace(request, stream=False) for request in server.asked] == [replace(REQUEST, priority=None)]
        [account] = gateway.accounts()
        assert (account.sender, account.usage, account.requests) == (SENDER, REPLY.usage, 1)


async def test_counts_that_the_server_left_out_are_not_made_up_for_the_run() -> None:
    server = Server(ChatReply("an answer of some length", Usage()))
    async with served(server) as (gateway, url), asking(url) as transport:
        for stream in (False, True):
            assert (await transport.chat(replace(REQUEST, stream=stream), timeout=20)).usage == Usage()
        assert gateway.accounts()[0].usage.completion_tokens > 0  # what is shared out has to be estimated


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("failure", "arrives"),
    [
        (OverloadedError("busy", status=503, retry_after=7), OverloadedError),
        (UnreachableError("no connection"), UnreachableError),
        (ServerError("broken"), ServerError),
        (RejectedError("HTTP 400: too long", status=400), RejectedError),
        (RefusedError("HTTP 404: no such model", status=404), RefusedError),
    ],
)
async def test_failures_mean_the_same_behind_the_gateway(
    kind: Kind, failure: LLMError, arrives: type[LLMError]
) -> None:
    async with served(Server(failure=failure)) as (_, url), asking(url, kind) as transport:
        with pytest.raises(arrives, match=str(failure)) as caught:
            await transport.chat(REQUEST, timeout=20)
        assert caught.value.retry_after == failure.retry_after
        if failure.status is not None:
            assert caught.value.status == failure.status


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_the_server_refuses_is_the_gateways_and_not_the_runs(status: int) -> None:
    failure = RefusedError(f"HTTP {status}: Incorrect API key", status=status)
    async with served(Server(failure=failure)) as (_, url), asking(url) as transport:
        for ask in (transport.models, partial(transport.chat, REQUEST, timeout=20)):
            with pytest.raises(RefusedError, match="the server behind the gateway refuses the gateway's key") as caught:
                await ask()
            assert f"HTTP {status}: Incorrect API key" in str(caught.value)
            assert "--api-key-env" in str(caught.value)
            assert caught.value.status == 403  # with a 401 it would be the run's own


@pytest.mark.parametrize("status", [402, 403])
async def test_an_account_without_money_is_no_refused_key(status: int) -> None:
    failure = OutOfCreditError(f"HTTP {status}: billing_not_active", status=status)
    async with served(Server(failure=failure)) as (_, url), asking(url) as transport:
        with pytest.raises(OutOfCreditError, match="billing_not_active") as caught:
            await transport.chat(REQUEST, timeout=20)
        assert "--api-key-env" not in str(caught.value)


async def test_what_would_take_too_much_memory_is_turned_away_until_there_is_room() -> None:
    server = Server(hangs=True)
    long = replace(REQUEST, messages=(Message("user", "a" * 3000),))
    async with serve(Gateway(server, 1), most_bytes=5000) as url, asking(url) as transport:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(transport.chat, long, timeout=60))
            await server.began.wait()
            with pytest.raises(OverloadedError, match=r"requests of 0.0047\d* MB wait here already") as caught:
                await transport.chat(long, timeout=60)
            assert (caught.value.status, caught.value.retry_after) == (503, RETRY_SECONDS)
            tasks.cancel_scope.cancel()
        server.hangs = False
        with anyio.fail_after(60):
            await server.was_cancelled.wait()
            assert await transport.chat(long, timeout=60) == REPLY


async def test_a_body_of_unknown_length_counts_as_one_of_the_longest() -> None:
    async def pieces() -> AsyncGenerator[bytes]:
        yield b"{}"

    async with (
        serve(Gateway(Server(), 1), most_bytes=5000) as url,
        ClientSession() as session,
        session.post(f"{url}/chat/completions", data=pieces()) as response,
    ):
        assert response.status == 503


@pytest.mark.parametrize(
    ("host", "name", "status"),
    [
        ("127.0.0.1", "localhost", 200),
        ("127.0.0.1", "127.0.0.1", 200),
        ("127.0.0.1", "evil.example", 403),
        ("0.0.0.0", "gpu-box.example", 200),
    ],
)
async def test_on_loopback_it_is_asked_for_by_a_name_of_this_machine(host: str, name: str, status: int) -> None:
    """So that no page can have a browser ask under a name of its own that leads here."""
    async with serve(Gateway(Server(), 1), host=host) as url, ClientSession() as session:
        port = url.rpartition(":")[2].removesuffix("/v1")
        for path in ("metrics", "v1/models"):
            headers = {"Host": f"{name}:{port}"}
            async with session.get(f"http://127.0.0.1:{port}/{path}", headers=headers) as response:
                assert response.status == status


async def test_a_client_that_goes_away_takes_its_request_along() -> None:
    server = Server(hangs=True)
    async with served(server) as (gateway, url), asking(url) as transport:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: transport.chat(REQUEST, timeout=60))
            await server.began.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(20):
            await server.was_cancelled.wait()
        assert gateway.stats().in_flight == 0


async def test_models_and_embeddings() -> None:
    async with served(Server()) as (_, url), asking(url) as transport:
        assert await transport.models() == ("m", "other")
        with pytest.raises(RefusedError, match="makes no embeddings"):
            await transport.embed(EmbedRequest("e", ("a",)), timeout=20)


class Embedding(Server):
    """Makes vectors, too."""

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        assert request.extra == {"dimensions": 2}
        return EmbedReply(tuple((float(len(text)), 0.5) for text in request.texts), Usage(3), "e")


@pytest.mark.parametrize("form", [None, "float", "base64"])
async def test_vectors_come_as_openais_sdk_wants_them(form: Literal["float", "base64"] | None) -> None:
    async with served(Embedding()) as (_, url), AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        answer = await client.embeddings.create(
            model="e", input=["a", "bcd"], dimensions=2, encoding_format=omit if form is None else form
        )
    assert [each.embedding for each in answer.data] == (
        ["AACAPwAAAD8=", "AABAQAAAAD8="] if form == "base64" else [[1.0, 0.5], [3.0, 0.5]]
    )


@pytest.mark.parametrize(
    ("body", "headers", "said"),
    [
        (b"{", {}, "invalid request"),
        (b"[" * 100_000, {}, "nested too deeply"),
        (b"[]", {}, "must be a JSON object"),
        (b'{"messages": [{"role": "user", "content": "a"}]}', {}, "model is missing"),
        (b'{"model": "m", "messages": [{"role": "tool", "content": "a"}]}', {}, "a message needs a role"),
        (
            b'{"model": "m", "messages": [{"role": "user", "content": "a", "name": "b"}]}',
            {},
            "its 'name' would be lost",
        ),
        (b'{"model": "m", "messages": [{"role": "user", "content": "a"}], "n": 2}', {}, "'n' asks for more"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": [{}]}', {}, "'tools' asks for more"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "a"}], "stop": 3}', {}, "stop must be"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "a"}], "seed": "x"}', {}, "seed must be a number"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "a"}]}', {"X-Flowevolve-Run": "a b"}, "Run must be"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "a"}]}', {"X-Flowevolve-Share": "-1"}, "Share must"),
    ],
)
async def test_what_can_not_be_passed_on_is_told(body: bytes, headers: dict[str, str], said: str) -> None:
    server = Server()
    async with (
        served(server) as (_, url),
        ClientSession() as session,
        session.post(f"{url}/chat/completions", data=body, headers=headers) as response,
    ):
        assert response.status == 400
        assert said in json.loads(await response.read())["error"]["message"]
    assert server.asked == []


async def test_metrics_are_those_of_a_server_with_those_of_each_run() -> None:
    server = Server()
    async with served(server) as (_, url), asking(url) as transport, ClientSession() as session:
        await transport.chat(REQUEST, timeout=20)
        async with session.post(
            f"{url}/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "a"}]}
        ) as response:
            assert response.status == 200  # any other client of the API
        async with session.get(f"{url.removesuffix('/v1')}/metrics") as response:
            text = await response.text()
        load = parse_load(text)
        assert load is not None
        assert (load.running, load.waiting) == (0, 0)
        assert 'flowevolve_gateway_share{run="run-a"} 2' in text
        assert 'flowevolve_gateway_completion_tokens_total{run="run-a"} 4' in text
        assert 'flowevolve_gateway_requests_answered_total{run="others"} 1' in text


async def test_a_port_that_is_taken_is_told() -> None:
    async with serve(Gateway(Server(), 1)) as url:
        port = int(url.rpartition(":")[2].removesuffix("/v1"))
        with pytest.raises(OSError, match="address already in use"):
            async with serve(Gateway(Server(), 1), port=port):
                pass
