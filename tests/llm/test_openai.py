import json
import socket
from contextlib import asynccontextmanager

import anyio
import pytest
from aiohttp import web

from flowevolve.llm.openai import OpenAITransport
from flowevolve.llm.types import (
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

pytestmark = pytest.mark.anyio

DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
MINUTE_LATER = "Wed, 21 Oct 2015 07:29:00 GMT"
REQUEST = ChatRequest("m", (Message("user", "hello"),))
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}
MESSAGE = {"role": "assistant", "content": "hi"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def answer(message=MESSAGE, finish_reason="stop", **more):
    return {
        "id": "1",
        "model": "m-1",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        **more,
    }


def says(body, status=200, **headers):
    async def handle(_request):
        text = body if isinstance(body, str) else json.dumps(body)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=text, headers={"Content-Type": "application/json", **names})

    return handle


@asynccontextmanager
async def serving(handle, api_key=None):
    """A transport to a server on loopback that handles every request with ``handle``."""
    app = web.Application()
    app.router.add_route("*", "/v1/{rest:.*}", handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    transport = OpenAITransport(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", api_key, max_connections=4)
    try:
        yield transport
    finally:
        await transport.aclose()
        await runner.cleanup()


async def chat(handle, request=REQUEST, seconds=5.0):
    async with serving(handle) as transport:
        return await transport.chat(request, timeout=seconds)


async def fails(error_class, handle, **options):
    with pytest.raises(error_class) as caught:
        await chat(handle, **options)
    assert type(caught.value) is error_class
    return caught.value


async def test_it_is_a_transport_with_an_address() -> None:
    transport = OpenAITransport("http://example.invalid/v1", None, max_connections=1)
    assert isinstance(transport, Transport)
    assert transport.base_url == "http://example.invalid/v1"
    await transport.aclose()


async def test_a_good_answer() -> None:
    assert await chat(says(answer(usage=USAGE))) == ChatReply("hi", Usage(9, 4, 5), "stop", "m-1")


@pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": {"prompt_tokens": 3}}])
async def test_missing_usage_counts_as_nothing(usage) -> None:
    assert (await chat(says(answer(**usage)))).usage == Usage()


async def test_missing_cache_details_count_as_nothing_cached() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": None}
    assert (await chat(says(answer(usage=usage)))).usage == Usage(9, 4, 0)


async def test_missing_names_are_filled_in() -> None:
    body = {"choices": [{"message": {"content": "hi"}}]}
    assert await chat(says(body)) == ChatReply("hi", Usage(), "stop", "m")


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_that_ended_before_its_text_began_is_empty(reason) -> None:
    reply = await chat(says(answer({"role": "assistant", "content": None}, reason, usage=USAGE)))
    assert (reply.text, reply.finish_reason, reply.usage.completion_tokens) == ("", reason, 4)


async def sent(request, api_key=None):
    seen: dict[str, object] = {}

    async def handle(http_request):
        seen.update(path=http_request.path, headers=http_request.headers, body=await http_request.json())
        return await says(answer())(http_request)

    async with serving(handle, api_key) as transport:
        await transport.chat(request, timeout=5)
    return seen


async def test_what_is_sent() -> None:
    messages = (Message("system", "be brief"), Message("user", "hello ☃"), Message("assistant", "hi"))
    seen = await sent(
        ChatRequest(
            "m", messages, 0.0, 99, 7, ("END",), -2, extra={"top_k": 3, "chat_template_kwargs": {"think": False}}
        ),
        api_key="secret",
    )
    assert seen["path"] == "/v1/chat/completions"
    assert seen["headers"]["Authorization"] == "Bearer secret"
    assert seen["body"] == {
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


async def test_nothing_is_sent_that_was_not_asked_for() -> None:
    assert (await sent(REQUEST))["body"].keys() == {"model", "messages"}


async def test_a_key_in_the_environment_goes_nowhere(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert "secret" not in str((await sent(REQUEST))["headers"])


# Errors


@pytest.mark.parametrize("status", [401, 402, 403, 404, 405])
async def test_refusals(status) -> None:
    error = await fails(RefusedError, says({"error": {"message": "no such thing"}}, status))
    assert error.status == status
    assert "no such thing" in str(error)


@pytest.mark.parametrize(
    "problem",
    [
        {"message": "The model `x` does not exist"},
        {"message": "Invalid model: x"},
        {"message": "x is not a valid model ID"},
        {"message": "sorry", "code": "model_not_found"},
        {"message": "sorry", "param": "model"},
    ],
)
async def test_a_400_about_the_model_is_a_refusal(problem) -> None:
    assert (await fails(RefusedError, says({"error": problem}, 400))).status == 400


@pytest.mark.parametrize("status", [400, 409, 413, 422])
async def test_rejections(status) -> None:
    problem = {"message": "This model's maximum context length is 10 tokens", "type": "BadRequestError", "code": status}
    error = await fails(RejectedError, says({"error": problem}, status))
    assert error.status == status
    assert "maximum context length" in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "0.5"}, 0.5),
        ({"Retry_After": "-3"}, 0.0),
        ({"Retry_After": MINUTE_LATER, "Date": DATE}, 60.0),
        ({"Retry_After": DATE, "Date": MINUTE_LATER}, 0.0),
        ({"Retry_After": "soon"}, None),
        ({"Retry_After": "nan"}, None),
        ({"Retry_After": "inf"}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_overload_and_how_long_to_wait(status, headers, seconds) -> None:
    error = await fails(OverloadedError, says({"error": {"message": "slow down"}}, status, **headers))
    assert (error.status, error.retry_after) == (status, seconds)


async def test_an_account_without_money_will_not_recover_by_waiting() -> None:
    await fails(RefusedError, says({"error": {"message": "check your plan", "code": "insufficient_quota"}}, 429))


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_server_errors(status) -> None:
    error = await fails(ServerError, says("<html>oh no</html>", status, Content_Type="text/html"))
    assert error.status == status
    assert "oh no" in str(error)


@pytest.mark.parametrize("content_type", ["application/json", "text/html"])
@pytest.mark.parametrize(
    "body",
    [
        '{"choices": [',
        "<html>a proxy's login page</html>",
        "",
        "null",
        "[]",
        {"object": "error", "message": "out of memory"},
        {"choices": []},
        {"choices": None},
        {"choices": [{"message": None, "finish_reason": "stop"}]},
        answer({"role": "assistant", "content": None}),
        answer({"role": "assistant"}),
        answer({"role": "assistant", "content": 5}),
        answer({"role": "assistant", "content": None}, "tool_calls"),
    ],
)
async def test_a_body_that_is_no_answer(body, content_type) -> None:
    await fails(ServerError, says(body, Content_Type=content_type))


async def test_an_answer_that_is_not_http() -> None:
    async def shout(stream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"GO AWAY\r\n\r\n")

    async with raw_server(shout) as transport:
        with pytest.raises(ServerError):
            await transport.chat(REQUEST, timeout=5)


@asynccontextmanager
async def raw_server(handle):
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    transport = OpenAITransport(f"http://127.0.0.1:{port}/v1", None, max_connections=4)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        try:
            yield transport
        finally:
            await transport.aclose()
            tasks.cancel_scope.cancel()
    await listener.aclose()


@pytest.mark.parametrize(
    "sent_before", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"]
)
async def test_a_connection_cut_before_or_within_the_answer(sent_before) -> None:
    async def cut(stream) -> None:
        async with stream:
            await stream.receive()
            if sent_before:
                await stream.send(sent_before)

    async with raw_server(cut) as transport:
        with pytest.raises(UnreachableError):
            await transport.chat(REQUEST, timeout=5)


async def test_a_reset() -> None:
    async def reset(stream) -> None:
        await stream.receive()
        raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        await stream.aclose()

    async with raw_server(reset) as transport:
        with pytest.raises(UnreachableError):
            await transport.chat(REQUEST, timeout=5)


async def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        transport = OpenAITransport(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", None, max_connections=1)
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1"):
            await transport.chat(REQUEST, timeout=5)
        await transport.aclose()


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


async def test_no_answer_in_time_closes_the_request() -> None:
    hanging = Hanging()
    async with serving(hanging.handle) as transport:
        with pytest.raises(UnreachableError, match=r"within 0\.05 s"):
            await transport.chat(REQUEST, timeout=0.05)
        with anyio.fail_after(5):
            await hanging.left.wait()


async def test_an_answer_that_trickles_in_is_cut_off_too() -> None:
    async def trickle(request) -> None:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await anyio.sleep(0.001)

    await fails(UnreachableError, trickle, seconds=0.05)


async def test_cancelling_closes_the_request_at_once() -> None:
    hanging = Hanging()
    async with serving(hanging.handle) as transport, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: transport.chat(REQUEST, timeout=600))
        with anyio.fail_after(5):
            await hanging.called.wait()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await hanging.left.wait()


async def test_the_sdk_does_not_retry_by_itself() -> None:
    calls = []

    async def count(request):
        calls.append(request.path)
        return await says({}, 500)(request)

    await fails(ServerError, count)
    assert len(calls) == 1


async def test_a_message_that_is_no_text_is_rejected() -> None:
    await fails(RejectedError, says(answer()), request=ChatRequest("m", (Message("user", "\ud800"),)))


# The list of models


async def models(handle):
    async with serving(handle) as transport:
        return await transport.models()


async def test_models() -> None:
    body = {"object": "list", "data": [{"id": "a", "object": "model"}, {"id": "b"}, {}]}
    assert await models(says(body)) == ("a", "b")


@pytest.mark.parametrize("body", ["<html>", {"models": []}, "[]"])
async def test_something_that_is_no_list_of_models(body) -> None:
    with pytest.raises(ServerError):
        await models(says(body))


async def test_models_of_a_wrong_address() -> None:
    with pytest.raises(RefusedError):
        await models(says({}, 404))
