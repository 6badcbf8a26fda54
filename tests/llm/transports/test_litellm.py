"""The transport over LiteLLM: with a stand-in for the package, and with the package itself where it is installed."""

from __future__ import annotations

import importlib.util
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
from aiohttp import web

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.secrets import redacted
from flowevolve.config.run import parse_config
from flowevolve.core.model import (
    ChatRequest,
    LLMError,
    Message,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    Transport,
    UnreachableError,
    Usage,
)
from flowevolve.llm.transports.litellm import LiteLLMTransport
from flowevolve.runner.backend_checks import check_backend
from flowevolve.runner.llm import make_roles, open_roles
from tests.support.loopback import answer, server

pytestmark = pytest.mark.anyio

REQUEST = ChatRequest("anthropic/claude-sonnet-4-5", (Message("system", "be"), Message("user", "hi")), 0.5, 99, 7)
IS_INSTALLED = importlib.util.find_spec("litellm") is not None


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class StandIn(ModuleType):
    """Has what we use of LiteLLM, and answers with ``reply``."""

    def __init__(self, reply: dict[str, JSON] | None = None) -> None:
        super().__init__("litellm")
        self.__spec__ = importlib.util.spec_from_loader("litellm", None)
        self.suppress_debug_info = False
        self.telemetry = True
        self.requests: list[dict[str, JSON]] = []
        self._reply = reply or answer("hello", usage={"prompt_tokens": 9, "completion_tokens": 4})

    async def acompletion(self, **request: JSON) -> object:
        self.requests.append(request)
        return SimpleNamespace(model_dump_json=lambda: json.dumps(self._reply))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    package = StandIn()
    monkeypatch.setitem(sys.modules, "litellm", package)
    return package


async def test_a_request_is_handed_over_without_retries_and_the_reply_is_read(stand_in: StandIn) -> None:
    reply = await LiteLLMTransport().chat(REQUEST, timeout=60)
    assert (reply.text, reply.usage, reply.finish_reason) == ("hello", Usage(9, 4), "stop")
    assert stand_in.requests == [
        {
            "model": "anthropic/claude-sonnet-4-5",
            "messages": [{"role": "system", "content": "be"}, {"role": "user", "content": "hi"}],
            "temperature": 0.5,
            "max_tokens": 99,
            "seed": 7,
            "timeout": 60,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
        }
    ]
    assert (stand_in.suppress_debug_info, stand_in.telemetry) == (True, False)


async def test_what_the_provider_says_of_thinking_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    told = answer("4")
    told["choices"][0]["message"]["reasoning_content"] = "2 + 2"
    monkeypatch.setitem(sys.modules, "litellm", StandIn(told))
    reply = await LiteLLMTransport().chat(REQUEST, timeout=60)
    assert (reply.text, reply.thinking) == ("4", "2 + 2")


async def test_it_is_opened_by_the_configuration(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", "their-key-0123456789")
    config = parse_config(
        {
            "budget": {"proposals": 1},
            "llm": {
                "backend": "litellm",
                "model": "gemini/gemini-2.5-flash",
                "api_key_env": "THEIR_KEY",
                "enable_thinking": False,
            },
        },
        "test",
    )
    roles = make_roles(config)
    check_backend(config, roles)
    async with open_roles(config, roles) as opened:
        [member] = opened["task"].members
        assert isinstance(member.transport, Transport)
        assert not member.must_have_list
        assert member.chat_extra == {"reasoning_effort": "none"}
        await member.transport.chat(REQUEST, timeout=60)
        with pytest.raises(RefusedError) as raised:
            await member.transport.models()
    assert raised.value.status == 404
    assert stand_in.requests[0]["api_key"] == "their-key-0123456789"


async def test_keys_that_litellm_finds_by_itself_are_kept_out_of_texts(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEBODYS_API_KEY", "sk-somebody-0123456789")
    LiteLLMTransport()
    assert redacted("key sk-somebody-0123456789 is wrong") == "key [key] is wrong"


@pytest.mark.skipif(IS_INSTALLED, reason="LiteLLM is installed here")
def test_that_it_is_missing_is_said_before_anything_is_paid() -> None:
    config = parse_config({"budget": {"proposals": 1}, "llm": {"backend": "litellm", "model": "gemini/x"}}, "test")
    with pytest.raises(InputError, match=r"needs the package litellm: pip install 'flowevolve\[litellm\]'"):
        check_backend(config, make_roles(config))


def test_it_has_one_address_at_most(stand_in: StandIn) -> None:
    llm = {"backend": "litellm", "model": "gemini/x", "base_urls": ["http://a/v1", "http://b/v1"]}
    config = parse_config({"budget": {"proposals": 1}, "llm": llm}, "test")
    with pytest.raises(InputError, match="takes only one address"):
        check_backend(config, make_roles(config))


def test_it_lives_in_real_time() -> None:
    with pytest.raises(InputError, match="real servers answer in real time"):
        parse_config({"budget": {"proposals": 1}, "clock": "virtual", "llm": {"backend": "litellm"}}, "test")


# With LiteLLM itself, against servers on loopback

real = pytest.mark.skipif(not IS_INSTALLED, reason="LiteLLM is not installed here")


async def anthropics(request: web.Request) -> web.Response:
    """Anthropic's form of an answer, with thinking."""
    body = await request.json()
    assert (request.headers["x-api-key"], body["system"][0]["text"], "seed" in body) == (
        "a-key-0123456789",
        "be",
        False,
    )
    content = [{"type": "thinking", "thinking": "hmm", "signature": "s"}, {"type": "text", "text": "hello"}]
    told = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": content}
    usage = {"input_tokens": 9, "output_tokens": 4}
    return web.json_response({**told, "stop_reason": "end_turn", "usage": usage})


@real
async def test_a_model_of_anthropics_is_asked_in_its_own_form() -> None:
    async with server(anthropics) as url:
        reply = await LiteLLMTransport(url, "a-key-0123456789").chat(REQUEST, timeout=60)
    assert (reply.text, reply.thinking, reply.usage, reply.finish_reason) == ("hello", "hmm", Usage(9, 4), "stop")


@real
@pytest.mark.parametrize(
    ("status", "expected"),
    [(401, RefusedError), (404, RefusedError), (400, RejectedError), (429, OverloadedError), (500, ServerError)],
)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_failures_are_what_they_are_elsewhere(provider: str, status: int, expected: type[LLMError]) -> None:
    asked: list[int] = []

    async def fail(request: web.Request) -> web.Response:
        asked.append(1)
        told = {"type": "error", "error": {"type": "some_error", "message": "no"}}
        return web.json_response(told, status=status, headers={"Retry-After": "7"})

    request = ChatRequest(f"{provider}/m", (Message("user", "hi"),))
    async with server(fail) as url:
        with pytest.raises(expected) as raised:
            await LiteLLMTransport(url, "a-key-0123456789").chat(request, timeout=60)
    assert len(asked) == 1
    assert raised.value.retry_after == (7 if status in (429, 500) else None)


@real
@pytest.mark.parametrize("provider", ["openai", "anthropic", "ollama"])
async def test_a_server_that_is_not_there_is_unreachable(provider: str) -> None:
    async with server(anthropics) as url:
        pass
    request = ChatRequest(f"{provider}/m", (Message("user", "hi"),))
    with pytest.raises(UnreachableError):
        await LiteLLMTransport(url, "a-key-0123456789").chat(request, timeout=60)


@real
async def test_a_name_without_a_provider_is_refused() -> None:
    with pytest.raises(RefusedError, match="LLM Provider NOT provided"):
        await LiteLLMTransport().chat(ChatRequest("nonsense", (Message("user", "hi"),)), timeout=60)
