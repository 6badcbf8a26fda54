"""What holds for every transport, whether answers come at once or as a stream, against a server on loopback."""

import json
import socket
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web

from flowevolve._util.json_types import JSON
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    Message,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    Transport,
    UnreachableError,
    Usage,
)
from flowevolve.llm.transports import sse
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from flowevolve.llm.transports.openai import OpenAITransport

pytestmark = pytest.mark.anyio

DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
MINUTE_LATER = "Wed, 21 Oct 2015 07:29:00 GMT"
REQUEST = ChatRequest("m", (Message("user", "hello"),))
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class StreamingOpenAITransport(OpenAITransport):
    async def chat(self, request, *, timeout):
        return await super().chat(replace(request, stream=True), timeout=timeout)


class StreamingAioHTTPTransport(AioHTTPTransport):
    async def chat(self, request, *, timeout):
        return await super().chat(replace(request, stream=True), timeout=timeout)


STREAMING = [StreamingOpenAITransport, StreamingAioHTTPTransport]


@pytest.fixture(params=[OpenAITransport, AioHTTPTransport, *STREAMING])
def make(request):
    """The class of a transport, which asks for streams or does not."""
    return request.param


def answer(content="hi", finish_reason="stop", **more):
    message = {"role": "assistant", "content": content}
    return {"model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}], **more}


def events(body):
    """An answer as a stream: first the role, then the text in up to 50 parts, then the end, then usage."""
    choice = body["choices"][0] if body["choices"] else None
    chunks = [{"delta": {"role": "assistant"}}] if choice else []
    text = choice["message"]["content"] if choice else None
    if text is not None:
        size = 1 + len(text) // 50
        chunks += [{"delta": {"content": text[start : start + size]}} for start in range(0, len(text) + 1, size)]
    if choice:
        chunks.append({"delta": {}, "finish_reason": choice["finish_reason"]})
    told = [{"choices": [{"index": 0, **chunk}], "model": body["model"], "usage": None} for chunk in chunks]
    told.append({"choices": [], "model": body.get("model"), "usage": body.get("usage")})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in told) + "data: [DONE]\n\n"


async def wants_stream(request):
    return request.can_read_body and b'"stream":true' in await request.read()


def says(body, status=200, **headers):
    """Answers with a body: an answer as a stream where the request asks for one."""

    async def handle(request):
        streamed = isinstance(body, dict) and "choices" in body and await wants_stream(request)
        text = body if isinstance(body, str) else events(body) if streamed else json.dumps(body)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=text, headers={"Content-Type": "application/json", **names})

    return handle


async def echo(request):
    """Answers with the last message."""
    return await says(answer((await request.json())["messages"][-1]["content"]))(request)


@asynccontextmanager
async def server(handle, port=0):
    """The address of a server on loopback that handles every request with ``handle``."""
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/v1/{rest:.*}", handle)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, backlog=512).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(make, url, api_key=None, max_connections=4):
    transport = make(url, api_key, max_connections=max_connections)
    try:
        yield transport
    finally:
        await transport.aclose()


@asynccontextmanager
async def serving(make, handle, api_key=None, max_connections=4):
    async with server(handle) as url, connected(make, url, api_key, max_connections) as transport:
        yield transport


@asynccontextmanager
async def raw_server(make, handle):
    """A transport to a server that handles bare connections."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        async with connected(make, f"http://127.0.0.1:{port}/v1") as transport:
            yield transport
        tasks.cancel_scope.cancel()
    await listener.aclose()


async def chat(make, handle, request=REQUEST, seconds=60.0):
    async with serving(make, handle) as transport:
        return await transport.chat(request, timeout=seconds)


async def fails(error_class, call):
    with pytest.raises(error_class) as caught:
        await call
    assert type(caught.value) is error_class
    return caught.value


def said(text):
    return ChatRequest("m", (Message("user", text),))


# What is sent


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


# Answers


async def test_a_good_answer(make) -> None:
    assert await chat(make, says(answer(usage=USAGE))) == ChatReply("hi", Usage(9, 4, 5), "stop", "m-1")


@pytest.mark.parametrize("text", ["", '\u2028 \x00 "quoted" \\ \r\n', "☃ 🧬 é e\u0301 \uffff \u202e"])
async def test_text_comes_back_as_it_was_sent(make, text) -> None:
    assert (await chat(make, echo, said(text))).text == text


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_huge_prompt_and_a_huge_answer(make) -> None:
    text = "☃" * 2**21
    assert (await chat(make, echo, said(text), seconds=30)).text == text


async def test_a_large_body_does_not_hold_up_the_loop() -> None:
    """aiohttp warns of bodies that do, and here a warning is an error."""
    assert (await chat(AioHTTPTransport, echo, said("x" * 2**21))).text == "x" * 2**21


async def test_an_answer_in_pieces(make) -> None:
    async def pieces(request):
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_compression()
        await response.prepare(request)
        for byte in json.dumps(answer("☃ in pieces"), ensure_ascii=False).encode():
            await response.write(bytes([byte]))
        return response

    assert (await chat(make, pieces)).text == "☃ in pieces"


async def test_a_redirect_is_followed(make) -> None:
    async def moved(request):
        if request.path.startswith("/v1/new"):
            return await echo(request)
        raise web.HTTPTemporaryRedirect("/v1/new/chat/completions")

    assert (await chat(make, moved)).text == "hello"


@pytest.mark.parametrize("content_type", ["application/json", "text/html"])
@pytest.mark.parametrize(
    "body",
    [
        "",
        '{"choices": [{"message": {"content": "h',
        "<html>a proxy's login page</html>",
        {"choices": []},
        answer(None),
        answer(None, "tool_calls"),
    ],
)
async def test_a_body_that_is_no_answer(make, body, content_type) -> None:
    await fails(ServerError, chat(make, says(body, Content_Type=content_type)))


@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        (400, RejectedError),
        (401, RefusedError),
        (404, RefusedError),
        (422, RejectedError),
        (429, OverloadedError),
        (500, ServerError),
        (503, OverloadedError),
    ],
)
async def test_a_status_that_says_no(make, status, error_class) -> None:
    error = await fails(error_class, chat(make, says({"error": {"message": "no such thing"}}, status)))
    assert (error.status, error.retry_after) == (status, None)
    assert str(error) == f"HTTP {status}: no such thing"


async def test_a_failure_without_words(make) -> None:
    assert str(await fails(ServerError, chat(make, says("", 500)))) == "HTTP 500: Internal Server Error"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": MINUTE_LATER, "Date": DATE}, 60.0),
        ({"Retry_After_Ms": "250", "Retry_After": "1"}, 0.25),
    ],
)
@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        (429, OverloadedError),
        (503, OverloadedError),
        (529, OverloadedError),
        (500, ServerError),
        (502, UnreachableError),
    ],
)
async def test_how_long_a_server_asks_to_wait(make, status, error_class, headers, seconds) -> None:
    error = await fails(error_class, chat(make, says({}, status, **headers)))
    assert error.retry_after == seconds


# Streams alone; how they are put together is in test_sse.py

streaming = pytest.mark.parametrize("make", STREAMING)


def pours(*parts, last=None):
    """Streams these parts of a body and, without its end, waits for ``last``."""

    async def handle(request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for part in parts:
            await response.write(part.encode())
            await anyio.lowlevel.checkpoint()
        if last is not None:
            await last.wait()
        return response

    return handle


@streaming
async def test_a_stream_in_single_bytes(make) -> None:
    assert (await chat(make, pours(*events(answer("in pieces", usage=USAGE))))) == ChatReply(
        "in pieces", Usage(9, 4, 5), "stop", "m-1"
    )


@streaming
async def test_an_error_inside_a_stream(make) -> None:
    begun = events(answer("hello")).split("\n\n")[0] + "\n\n"
    told = json.dumps({"error": {"message": "out of memory", "code": 503}})
    error = await fails(OverloadedError, chat(make, pours(begun, f"data: {told}\n\n", "data: [DONE]\n\n")))
    assert "out of memory" in str(error)


@streaming
async def test_after_the_last_word_nobody_waits_for_the_end_of_the_body(make, monkeypatch) -> None:
    monkeypatch.setattr(sse, "REST_SECONDS", 0.01)
    never = anyio.Event()
    async with serving(make, pours(events(answer("hi")), last=never), max_connections=1) as transport:
        for _ in range(2):
            assert (await transport.chat(REQUEST, timeout=60)).text == "hi"


@streaming
async def test_connections_are_used_again_though_their_end_comes_late(make) -> None:
    connections = Counter[str]()

    async def late(request):
        connections[request.transport.get_extra_info("peername")] += 1
        response = await pours(events(answer("hi")))(request)
        await anyio.sleep(0.002)
        return response

    async with serving(make, late, max_connections=1) as transport:
        for _ in range(3):
            await transport.chat(REQUEST, timeout=60)
    assert len(connections) == 1


async def test_log_probabilities_come_as_they_were_sent(make) -> None:
    told: JSON = {"content": [{"token": "hi", "logprob": -0.5, "bytes": None, "top_logprobs": []}], "refusal": None}
    body = answer("hi")
    body["choices"][0]["logprobs"] = told
    parts = [{"delta": {"content": "hi"}, "logprobs": told}, {"delta": {}, "finish_reason": "stop"}]
    stream = "".join(f"data: {json.dumps({'choices': [part]})}\n\n" for part in parts)
    handle = pours(stream) if make in STREAMING else says(body)
    assert (await chat(make, handle)).logprobs == told
    assert (await chat(make, says(answer("hi")))).logprobs is None


# Connections


async def test_an_answer_that_is_not_http(make) -> None:
    async def shout(stream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"GO AWAY\r\n\r\n")

    async with raw_server(make, shout) as transport:
        await fails(ServerError, transport.chat(REQUEST, timeout=60))


async def test_what_a_server_says_before_it_answers_is_not_its_answer(make) -> None:
    body = json.dumps(answer("hi")).encode()

    async def hint(stream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async with raw_server(make, hint) as transport:
        assert (await transport.chat(REQUEST, timeout=60)).text == "hi"


@pytest.mark.parametrize("length", [b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n9\r\n{", None])
async def test_a_connection_cut_before_or_within_the_answer(make, length) -> None:
    async def cut(stream) -> None:
        async with stream:
            await stream.receive()
            if length is not None:
                await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + length)

    async with raw_server(make, cut) as transport:
        await fails(UnreachableError, transport.chat(REQUEST, timeout=60))


async def test_a_reset(make) -> None:
    async def reset(stream) -> None:
        await stream.receive()
        raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        await stream.aclose()

    async with raw_server(make, reset) as transport:
        await fails(UnreachableError, transport.chat(REQUEST, timeout=60))


async def test_nobody_listens(make) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        async with connected(make, f"http://127.0.0.1:{taken.getsockname()[1]}/v1") as transport:
            error = await fails(UnreachableError, transport.chat(REQUEST, timeout=60))
    assert "127.0.0.1" in str(error)


@pytest.mark.parametrize("url", ["127.0.0.1:9/v1", "ftp://127.0.0.1:9/v1", "http:///v1"])
async def test_an_address_that_is_none(make, url) -> None:
    async with connected(make, url) as transport:
        await fails(UnreachableError, transport.chat(REQUEST, timeout=60))


async def test_redirects_in_a_circle(make) -> None:
    async def again(request):
        raise web.HTTPTemporaryRedirect(request.path)

    await fails(UnreachableError, chat(make, again))


class Hanging:
    """A handler that never answers and says when it was called and when its client went away."""

    def __init__(self) -> None:
        self.called, self.left = anyio.Event(), anyio.Event()

    async def handle(self, _request) -> None:
        self.called.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.left.set()


async def test_no_answer_in_time_closes_the_request(make) -> None:
    hanging = Hanging()
    async with serving(make, hanging.handle) as transport:
        error = await fails(UnreachableError, transport.chat(REQUEST, timeout=0.25))
        assert "within 0.25 s" in str(error)
        if hanging.called.is_set():  # else the machine is busy, and the server has not heard of it
            with anyio.fail_after(60):
                await hanging.left.wait()


async def test_an_answer_that_trickles_in_is_cut_off_too(make) -> None:
    async def trickle(request) -> None:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await anyio.sleep(0.001)

    await fails(UnreachableError, chat(make, trickle, seconds=0.05))


async def test_cancelling_closes_the_request_at_once(make) -> None:
    hanging = Hanging()
    async with serving(make, hanging.handle) as transport, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: transport.chat(REQUEST, timeout=600))
        with anyio.fail_after(60):
            await hanging.called.wait()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await hanging.left.wait()


async def test_calls_side_by_side_get_their_own_answers(make) -> None:
    everybody, arrived = anyio.Event(), Counter[str]()

    async def wait_for_all(request):
        arrived[request.transport.get_extra_info("peername")] += 1
        if arrived.total() == 200:
            everybody.set()
        await everybody.wait()
        return await echo(request)

    async with serving(make, wait_for_all, max_connections=200) as transport:
        await all_say_their_own(transport)
    assert len(arrived) == 200


async def test_connections_are_bounded_and_used_again(make) -> None:
    connections = Counter[str]()

    async def count(request):
        connections[request.transport.get_extra_info("peername")] += 1
        return await echo(request)

    async with serving(make, count, max_connections=4) as transport:
        await all_say_their_own(transport)
    assert connections.total() == 200
    assert len(connections) == 4


async def all_say_their_own(transport) -> None:
    replies: dict[int, str] = {}

    async def call(number) -> None:
        replies[number] = (await transport.chat(said(f"I am {number}"), timeout=60)).text

    async with anyio.create_task_group() as tasks:
        for number in range(200):
            tasks.start_soon(call, number)
    assert replies == {number: f"I am {number}" for number in range(200)}


async def test_it_is_a_transport_with_an_address(make) -> None:
    async with connected(make, "http://example.invalid/v1") as transport:
        assert transport.base_url == "http://example.invalid/v1"
        assert isinstance(transport, Transport)


async def test_closing_twice_and_closing_unused(make) -> None:
    async with serving(make, echo) as transport, connected(make, transport.base_url) as unused:
        await transport.chat(REQUEST, timeout=60)
        for each in (transport, unused):
            await each.aclose()
            await each.aclose()


async def test_closing_ends_open_calls(make) -> None:
    hanging = Hanging()
    async with serving(make, hanging.handle) as transport, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: fails(UnreachableError, transport.chat(REQUEST, timeout=600)))
        with anyio.fail_after(60):
            await hanging.called.wait()
            await transport.aclose()


def test_after_closing_another_loop_can_use_the_fast_transport(free_tcp_port) -> None:
    transport = AioHTTPTransport(f"http://127.0.0.1:{free_tcp_port}/v1", None, max_connections=1)

    async def go() -> str:
        async with server(echo, free_tcp_port):
            try:
                return (await transport.chat(REQUEST, timeout=60)).text
            finally:
                await transport.aclose()

    assert [anyio.run(go), anyio.run(go)] == ["hello", "hello"]


# The list of models


async def models(make, handle):
    async with serving(make, handle) as transport:
        return await transport.models()


async def test_models(make) -> None:
    body = {"object": "list", "data": [{"id": "a", "object": "model"}, {"id": "b"}, {}]}
    assert await models(make, says(body)) == ("a", "b")


async def test_something_that_is_no_list_of_models(make) -> None:
    await fails(ServerError, models(make, says("<html>")))


async def test_models_of_a_wrong_address(make) -> None:
    await fails(RefusedError, models(make, says({}, 404)))


# Headers


async def test_headers_come_with_the_answer(make) -> None:
    reply = await chat(make, says(answer(), x_ratelimit_remaining_requests="41"))
    assert reply.headers is not None
    assert reply.headers["x-ratelimit-remaining-requests"] == "41"


async def test_headers_come_with_a_refusal(make) -> None:
    error = await fails(OverloadedError, chat(make, says({}, 429, X_RateLimit_Reset_Requests="6m0s")))
    assert error.headers is not None
    assert error.headers["x-ratelimit-reset-requests"] == "6m0s"
