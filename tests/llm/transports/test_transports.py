"""What holds for every transport, whether answers come at once or as a stream, against a server on loopback."""

import json
from collections import Counter

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web

from flowevolve._util.json_types import JSON
from flowevolve.core.model import (
    ChatReply,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    UnreachableError,
    Usage,
)
from flowevolve.llm.transports import sse
from flowevolve.llm.transports.aiohttp import AioHTTPTransport
from tests.support.loopback import REQUEST, STREAMING, answer, chat, echo, events, fails, said, says, serving

pytestmark = pytest.mark.anyio

DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
MINUTE_LATER = "Wed, 21 Oct 2015 07:29:00 GMT"
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}


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
