"""Requests in the form that a model wants, against servers on loopback that refuse every other one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from flowevolve._util.json_types import JSON
from flowevolve._util.tasks import run_all
from flowevolve.core.calls import CallRecord, CallScope
from flowevolve.core.model import ChatRequest, Message, RejectedError, ServerTransport, Transport
from flowevolve.llm.client.accounting import Account
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from tests.support.http_transports import Kind
from tests.support.loopback import answer, events, server

pytestmark = pytest.mark.anyio

SYSTEM, USER = Message("system", "be brief"), Message("user", "2 + 2?")
Refusal = Callable[[dict[str, JSON]], JSON]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def unsupported(field: str, instead: str | None = None) -> JSON:
    more = "" if instead is None else f" Use '{instead}' instead."
    text = f"Unsupported parameter: '{field}' is not supported with this model.{more}"
    return {
        "error": {"message": text, "type": "invalid_request_error", "param": field, "code": "unsupported_parameter"}
    }


def unsupported_value(field: str, value: object) -> JSON:
    text = f"Unsupported value: '{field}' does not support '{value}' with this model."
    return {"error": {"message": text, "type": "invalid_request_error", "param": field, "code": "unsupported_value"}}


def reasoning_model(body: dict[str, JSON]) -> JSON:
    """What OpenAI's reasoning models refuse, one field at a time."""
    if "max_tokens" in body:
        return unsupported("max_tokens", "max_completion_tokens")
    if body.get("temperature", 1) != 1:
        return unsupported_value("temperature", body["temperature"])
    if "seed" in body:
        return unsupported("seed")
    messages = body["messages"]
    assert isinstance(messages, list)
    for place, message in enumerate(messages):
        assert isinstance(message, dict)
        if message["role"] == "system":
            return unsupported_value(f"messages[{place}].role", "system")
    return None


class Strict:
    """A server that answers with ``status`` where ``refuse`` has something to say, and else with 4."""

    def __init__(self, refuse: Refusal, status: int = 400) -> None:
        self.bodies: list[dict[str, JSON]] = []
        self._refuse = refuse
        self._status = status

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        refusal = self._refuse(body)
        if refusal is not None:
            return web.Response(status=self._status, text=json.dumps(refusal), content_type="application/json")
        told = answer("4", usage={"prompt_tokens": 9, "completion_tokens": 4})
        return web.Response(text=events(told) if body.get("stream") else json.dumps(told))

    @property
    def accepted(self) -> list[dict[str, JSON]]:
        return [body for body in self.bodies if self._refuse(body) is None]


@asynccontextmanager
async def connected(kind: Kind, strict: Strict) -> AsyncIterator[Transport]:
    async with server(strict.handle) as url:
        transport = kind(url, None, max_connections=4)
        try:
            yield transport
        finally:
            await transport.aclose()


def request(model: str, *, stream: bool = False, messages: Sequence[Message] = (SYSTEM, USER)) -> ChatRequest:
    return ChatRequest(model, tuple(messages), temperature=0.7, max_tokens=99, seed=7, stream=stream)


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_model_refuses_is_learnt_once(kind: Kind, stream: bool) -> None:
    strict = Strict(reasoning_model)
    async with connected(kind, strict) as transport:
        with capture_logs() as logs:
            for _ in range(2):
                reply = await transport.chat(request("my-deployment", stream=stream), timeout=60)
                assert (reply.text, reply.usage.total_tokens) == ("4", 13)
    assert (len(strict.bodies), len(strict.accepted)) == (6, 2)
    sent = strict.accepted[-1]
    assert sent["max_completion_tokens"] == 99
    assert sent.keys().isdisjoint({"max_tokens", "temperature", "seed"})
    assert sent["messages"] == [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "2 + 2?"}]
    assert [log["refused"] for log in logs if log["event"] == "request.adapted"] == [
        "max_tokens",
        "temperature",
        "seed",
        "role",
    ]


@pytest.mark.parametrize(
    "model", ["o1", "o3-mini", "o4-mini-2025-04-16", "gpt-5", "openai/gpt-5-mini", "ft:o4-mini:us"]
)
async def test_a_model_that_is_known_by_name_is_asked_in_its_form_at_once(kind: Kind, model: str) -> None:
    strict = Strict(lambda body: None)
    async with connected(kind, strict) as transport:
        await transport.chat(request(model), timeout=60)
    [body] = strict.bodies
    assert body == {
        "model": model,
        "messages": [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "2 + 2?"}],
        "max_completion_tokens": 99,
        "seed": 7,
    }


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5-chat-latest", "Qwen/Qwen3-8B", "gpt-oss-20b", "marco-o1", "foo3"])
async def test_other_models_are_asked_as_ever(kind: Kind, model: str) -> None:
    strict = Strict(lambda body: None)
    async with connected(kind, strict) as transport:
        await transport.chat(request(model), timeout=60)
    [body] = strict.bodies
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (99, 0.7, 7)
    assert body["messages"] == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "2 + 2?"}]


async def test_a_model_that_may_do_without_thinking_has_its_temperature_then() -> None:
    strict = Strict(lambda body: None)
    async with connected(AioHTTPTransport, strict) as transport:
        for effort in ("none", "low"):
            asked = ChatRequest("gpt-5.1", (USER,), temperature=0.7, extra={"reasoning_effort": effort})
            await transport.chat(asked, timeout=60)
    assert [body.get("temperature") for body in strict.bodies] == [0.7, None]


async def test_a_server_that_takes_the_usual_form_of_a_known_model_is_asked_so(kind: Kind) -> None:
    """As a proxy may, that names its models like OpenAI's."""

    def refuse(body: dict[str, JSON]) -> JSON:
        if "max_completion_tokens" in body:
            return unsupported("max_completion_tokens")
        return unsupported_value("messages[0].role", "developer") if "developer" in json.dumps(body) else None

    strict = Strict(refuse)
    async with connected(kind, strict) as transport:
        await transport.chat(request("o3"), timeout=60)
    [body] = strict.accepted
    assert body["max_tokens"] == 99
    assert body["messages"] == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "2 + 2?"}]


MISTRAL: JSON = {
    "detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]
}
GOOGLE: JSON = [
    {"error": {"code": 400, "message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'}}
]
OLDER: JSON = {"error": {"message": "Unrecognized request argument supplied: seed", "code": None, "param": None}}
GROQ: JSON = {"error": {"message": "property 'seed' is unsupported", "type": "invalid_request_error"}}


@pytest.mark.parametrize(("refusal", "status"), [(MISTRAL, 422), (GOOGLE, 400), (OLDER, 400), (GROQ, 400)])
async def test_other_servers_say_it_in_other_words(refusal: JSON, status: int) -> None:
    strict = Strict(lambda body: refusal if "seed" in body else None, status)
    async with connected(AioHTTPTransport, strict) as transport:
        assert (await transport.chat(request("m"), timeout=60)).text == "4"
    assert strict.accepted[0]["max_tokens"] == 99


@pytest.mark.parametrize("field", ["reasoning_effort", "top_k", "model_options"])
async def test_what_the_user_asked_for_is_not_left_out_in_silence(kind: Kind, field: str) -> None:
    strict = Strict(lambda body: unsupported(field))
    async with connected(kind, strict) as transport:
        with pytest.raises(RejectedError, match=f"Unsupported parameter: '{field}'") as raised:
            await transport.chat(request("m"), timeout=60)
    assert type(raised.value) is RejectedError
    assert len(strict.bodies) == 1


@pytest.mark.parametrize("field", ["max_tokens", "messages[0].role", "seed"])
async def test_a_server_that_refuses_whatever_is_sent_is_not_asked_for_ever(kind: Kind, field: str) -> None:
    strict = Strict(lambda body: unsupported(field))
    async with connected(kind, strict) as transport:
        with pytest.raises(RejectedError):
            await transport.chat(request("m"), timeout=60)
    assert len(strict.bodies) <= 3


async def test_calls_side_by_side_learn_it_together(kind: Kind) -> None:
    strict = Strict(reasoning_model)
    async with connected(kind, strict) as transport:
        replies = await run_all([lambda: transport.chat(request("d"), timeout=60) for _ in range(4)])
    assert [reply.text for reply in replies] == ["4"] * 4
    assert len(strict.accepted) == 4


async def test_a_refused_field_is_no_paid_call_no_retry_and_no_overload(kind: Kind) -> None:
    """Neither accounts nor retries, nor what admission goes by, know that the form had to be learnt."""
    strict, records = Strict(reasoning_model), list[CallRecord]()
    async with connected(kind, strict) as transport:
        assert isinstance(transport, ServerTransport)
        role = Model(transport, "d", max_tokens=99, temperature=0.7)
        client = LLMClient(
            {"r": role}, Scheduler(4), RetryPolicy(server_error_attempts=1), 7, records.append, Account({})
        )
        reply = await client.chat("r", [USER], scope=CallScope("generate", "1", None, 0, 0))
    assert reply.text == "4"
    totals = client.account.totals()
    assert (totals.requests, totals.failed, totals.retries, totals.usage.total_tokens) == (1, 0, 0, 13)
    assert [record.attempts for record in records] == [1]
    times = client.response_times.take_sample()
    assert (times.answered, times.refused) == (1, 0)
