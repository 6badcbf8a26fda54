"""What every transport sends to a server on loopback, and through which proxy."""

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.core.model import ChatRequest, Message, RejectedError, ServerError
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from tests.support.loopback import REQUEST, STREAMING, answer, chat, connected, echo, fails, said, says, server, serving

pytestmark = pytest.mark.anyio


async def sent(make, request, api_key=None):
    seen: dict[str, object] = {}

    async def handle(http_request):
        seen.update(path=http_request.path, headers=http_request.headers, body=await http_request.json())
        return await says(answer())(http_request)

    async with serving(make, handle, api_key) as transport:
        await transport.chat(request, timeout=60)
    return seen


def without_stream(body, make):
    asked = {"stream": True, "stream_options": {"include_usage": True}} if make in STREAMING else {}
    assert {name: body.pop(name) for name in asked} == asked
    return body


async def test_what_is_sent(make) -> None:
    messages = (Message("system", "be brief"), Message("user", "hello ☃"), Message("assistant", "hi"))
    extra: dict[str, JSON] = {"top_k": 3, "chat_template_kwargs": {"think": False}}
    seen = await sent(make, ChatRequest("m", messages, 0.0, 99, 7, ("END",), -2, extra), api_key="secret")
    assert seen["path"] == "/v1/chat/completions"
    assert seen["headers"]["Authorization"] == "Bearer secret"
    assert seen["headers"]["Content-Type"] == "application/json"
    assert without_stream(seen["body"], make) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hello ☃"},
            {"role": "assistant", "content": "hi"},
        ],
        "temperature": 0.0,
        "max_tokens": 99,
        "seed": 7,
        "stop": ["END"],
        "priority": -2,
        "top_k": 3,
        "chat_template_kwargs": {"think": False},
    }


async def test_nothing_is_sent_that_was_not_asked_for(make) -> None:
    assert without_stream((await sent(make, REQUEST))["body"], make).keys() == {"model", "messages"}


async def test_a_key_in_the_environment_goes_nowhere(make, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert "secret" not in str((await sent(make, REQUEST))["headers"])


async def test_the_account_at_openai_is_told_to_no_other_server(make, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "my-organization")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "my-project")
    assert "my-" not in str((await sent(make, REQUEST))["headers"])


async def test_a_key_in_the_path_is_in_no_header(make) -> None:
    async def handle(request):
        assert request.raw_path == "/v1/sk%2Fsecret/chat/completions"
        assert "secret" not in str(request.headers)
        return await says(answer())(request)

    async with server(handle) as url, connected(make, f"{url}/{{key}}", "sk/secret") as transport:
        assert transport.base_url == f"{url}/{{key}}"
        assert (await transport.chat(REQUEST, timeout=60)).text == "hi"


async def test_the_fast_transport_keeps_no_cookies() -> None:
    async def handle(request):
        assert not request.cookies
        response = await says(answer())(request)
        response.set_cookie("many", "x" * 4000)
        return response

    async with server(handle) as url, connected(AioHTTPTransport, url.replace("127.0.0.1", "localhost")) as transport:
        for _ in range(2):
            assert (await transport.chat(REQUEST, timeout=60)).text == "hi"


async def test_the_fast_transport_sends_no_placeholder_for_a_key() -> None:
    assert "Authorization" not in (await sent(AioHTTPTransport, REQUEST))["headers"]


async def test_one_call_is_one_request(make) -> None:
    calls = []

    async def count(request):
        calls.append(request.path)
        return await says({}, 500)(request)

    await fails(ServerError, chat(make, count))
    assert calls == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    "request_",
    [
        said("\ud800"),
        ChatRequest("\ud800", REQUEST.messages),
        ChatRequest("m", REQUEST.messages, stop=("\udfff",)),
        ChatRequest("m", REQUEST.messages, extra={"top_p": float("nan")}),
    ],
)
async def test_what_cannot_be_sent_is_rejected(make, request_) -> None:
    await fails(RejectedError, chat(make, says(answer()), request_))


async def test_a_proxy_of_the_environment_is_used(make, monkeypatch) -> None:
    async with server(echo) as url:
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", url.removesuffix("/v1"))
        async with connected(make, "http://model.invalid/v1") as transport:
            assert (await transport.chat(REQUEST, timeout=60)).text == "hello"


async def test_no_proxy_is_used_where_the_environment_says_so(make, monkeypatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert (await chat(make, echo)).text == "hello"
