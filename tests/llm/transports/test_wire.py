"""Bodies and statuses as they are read; that the transports hand them over is in test_transports.py."""

import json

import pytest

from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedRequest,
    Message,
    OutOfCreditError,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    UnreachableError,
    Usage,
)
from flowevolve.llm.transports.failures import retry_after_seconds, status_error
from flowevolve.llm.transports.wire import (
    chat_reply,
    embed_reply,
    model_names,
    request_body,
)

DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
MINUTE_LATER = "Wed, 21 Oct 2015 07:29:00 GMT"


def answer(message, finish_reason="stop", **more):
    return {"model": "m-1", "choices": [{"message": message, "finish_reason": finish_reason}], **more}


def reply(body):
    return chat_reply(json.dumps(body).encode(), "m")


def failure(status, body, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status_error(status, "Reason", {name.replace("_", "-"): value for name, value in headers.items()}, content)


# Requests


def test_extra_overrides_what_the_request_says() -> None:
    request = ChatRequest("m", (Message("user", "hello"),), seed=7, extra={"seed": None, "top_k": 3})
    assert request_body(request) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "seed": None,
        "top_k": 3,
    }


# Replies


@pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": []}, {"usage": {"prompt_tokens": None}}])
def test_missing_usage_counts_as_nothing(usage) -> None:
    assert reply(answer({"content": "hi"}, **usage)) == ChatReply("hi", Usage(), "stop", "m-1")


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 9}, Usage(9)),
        ({"completion_tokens": 4}, Usage(0, 4)),
        ({"prompt_tokens": 9, "total_tokens": 13}, Usage(9, 4)),
        ({"completion_tokens": 4, "total_tokens": 13}, Usage(9, 4)),
        ({"prompt_tokens": 9.0, "completion_tokens": 4.0}, Usage(9, 4)),
        ({"prompt_tokens": 9, "completion_tokens": "4"}, Usage(9)),
        ({"prompt_tokens": float("nan"), "completion_tokens": -4}, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 63}, Usage(9, 54)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 5}, Usage(9, 4)),
        ({"prompt_tokens": 10**18, "completion_tokens": 1e300}, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 10**18}, Usage(9, 4)),
        ({"prompt_tokens": 2**63, "completion_tokens": 4, "total_tokens": -1}, Usage(0, 4)),
        ({"prompt_tokens": 10**8, "completion_tokens": 10**8 + 1}, Usage(10**8)),
        ({"prompt_tokens": "9", "completion_tokens": True}, Usage()),
        ({"prompt_tokens": 9.5, "completion_tokens": float("inf"), "total_tokens": [9]}, Usage()),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 90}}, Usage(9, 0, 9)),
    ],
)
def test_every_number_of_a_usage_counts_by_itself(usage, counted) -> None:
    assert reply(answer({"content": "hi"}, usage=usage)).usage == counted


def test_missing_cache_details_count_as_nothing_cached() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": None}
    assert reply(answer({"content": "hi"}, usage=usage)).usage == Usage(9, 4, 0)


def test_missing_names_are_filled_in() -> None:
    assert reply({"choices": [{"message": {"content": "hi"}}]}) == ChatReply("hi", Usage(), "stop", "m")


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_an_answer_that_ended_before_its_text_began_is_empty(reason) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    ended = reply(answer({"role": "assistant", "content": None}, reason, usage=usage))
    assert (ended.text, ended.finish_reason, ended.usage.completion_tokens) == ("", reason, 4)


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
def test_whatever_a_server_calls_it_a_reply_that_ran_out_of_tokens_was_cut(reason) -> None:
    assert reply(answer({"content": "half of a te"}, reason)).was_cut
    assert not reply(answer({"content": "a text"}, "stop")).was_cut


@pytest.mark.parametrize("message", [{"content": None, "reasoning_content": "hmm"}, {"role": "assistant"}])
def test_an_answer_that_was_written_and_has_no_text_is_empty(message) -> None:
    ended = reply(answer(message, usage={"prompt_tokens": 9, "completion_tokens": 4}))
    assert (ended.text, ended.finish_reason, ended.usage) == ("", "stop", Usage(9, 4))


@pytest.mark.parametrize(
    "message",
    [
        {"content": "4", "reasoning_content": "hmm"},
        {"content": "4", "reasoning": " hmm\n"},
        {"content": "4", "reasoning_content": "hmm", "reasoning": "hmm"},
        {"content": "4", "reasoning_content": None, "reasoning": "hmm"},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]},
                {"type": "text", "text": "4"},
            ]
        },
        {"content": [{"type": "thinking", "thinking": "hmm"}, {"type": "text", "text": "4"}]},
    ],
)
def test_what_the_model_thought_is_read_apart(message) -> None:
    told = reply(answer(message))
    assert (told.text, told.thinking) == ("4", "hmm")


@pytest.mark.parametrize("thoughts", [None, 7, [], {"text": "hmm"}])
def test_thoughts_that_are_no_text_are_none(thoughts) -> None:
    assert reply(answer({"content": "4", "reasoning": thoughts})).thinking == ""


def test_an_answer_of_thoughts_alone_is_empty() -> None:
    told = reply(answer({"content": None, "reasoning": "hmm"}))
    assert (told.text, told.thinking) == ("", "hmm")


def test_of_an_answer_in_parts_the_text_is_read() -> None:
    parts = [{"type": "thinking", "thinking": "hmm"}, {"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]
    assert reply(answer({"content": parts})).text == "hello"


@pytest.mark.parametrize(
    ("body", "error_class"),
    [
        ({"error": {"message": "no luck", "code": 401}}, RefusedError),
        ({"error": {"message": "no luck", "code": "400"}, "choices": []}, RejectedError),
        ({"error": {"message": "no luck", "code": 429}}, OverloadedError),
        ({"object": "error", "message": "no luck", "code": 400}, RejectedError),
        ({"error": {"message": "no luck", "code": 500}}, ServerError),
        ({"error": {"message": "no luck", "code": 502}}, UnreachableError),
        ({"error": "no luck", "choices": [{"message": {"content": "hi"}}]}, ServerError),
    ],
)
def test_an_error_in_a_body_is_one_whatever_the_status(body, error_class) -> None:
    content = json.dumps(body).encode()
    for read in (lambda: chat_reply(content, "m"), lambda: embed_reply(content, EmbedRequest("m", ("a",)))):
        with pytest.raises(error_class, match="no luck") as caught:
            read()
        assert type(caught.value) is error_class


@pytest.mark.parametrize("choices", [[], [{"message": {"content": None}, "finish_reason": "tool_calls"}], None])
def test_what_a_useless_answer_is_to_be_paid_for_is_known(choices) -> None:
    with pytest.raises(ServerError) as caught:
        reply({"choices": choices, "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
    assert caught.value.usage == Usage(9, 4)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\xfd",
        b'{"choices": [',
        b"<html>a proxy's login page</html>",
        b"[" * 200_000,
        b"null",
        b"[]",
        b'{"object": "error", "message": "out of memory"}',
        b'{"choices": null}',
        b'{"choices": [{"message": null, "finish_reason": "stop"}]}',
        b'{"choices": [{"message": {"role": "assistant"}}]}',
        b'{"choices": [{"message": {"content": 5}}]}',
        b'{"choices": [{"message": {"content": null}, "finish_reason": "tool_calls"}]}',
    ],
)
def test_a_body_that_is_no_answer(content) -> None:
    with pytest.raises(ServerError) as caught:
        chat_reply(content, "m")
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize("content", [b"<html>", b'{"models": []}', b"[]"])
def test_something_that_is_no_list_of_models(content) -> None:
    with pytest.raises(ServerError):
        model_names(content)


# Statuses


@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        *((status, RefusedError) for status in (401, 403, 404, 405)),
        (402, OutOfCreditError),
        *((status, RejectedError) for status in (400, 409, 413, 418, 422)),
        *((status, OverloadedError) for status in (429, 503, 529)),
        *((status, ServerError) for status in (304, 500, 501, 525)),
        *((status, UnreachableError) for status in (408, 502, 504, 520, 521, 522, 523, 524)),
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no such thing"}},
        {"object": "error", "message": "no such thing"},
        {"error": "no such thing"},
        {"detail": [{"msg": "no such thing"}]},
        b"<html>no such thing</html>",
    ],
)
def test_a_status_decides_the_error_and_the_body_says_why(status, error_class, body) -> None:
    error = failure(status, body)
    assert type(error) is error_class
    assert error.status == status
    assert str(error).startswith(f"HTTP {status}: ")
    assert "no such thing" in str(error)


def test_without_words_the_reason_stands() -> None:
    assert str(failure(500, b" \n")) == "HTTP 500: Reason"


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
def test_a_400_about_the_model_is_a_refusal(problem) -> None:
    assert type(failure(400, {"error": problem})) is RefusedError


@pytest.mark.parametrize(
    "message",
    [
        "API key not valid. Please pass a valid API key.",
        "API key expired. Please renew the API key.",
        "Invalid API key provided",
    ],
)
def test_so_is_one_about_the_key(message: str) -> None:
    assert (
        type(failure(400, {"error": {"message": message, "code": 400, "status": "INVALID_ARGUMENT"}})) is RefusedError
    )


@pytest.mark.parametrize(
    "message", ["This model's maximum context length is 10 tokens", "can't read: 'why is it an invalid API key?'"]
)
def test_a_400_about_a_prompt_is_not(message: str) -> None:
    problem = {"message": message, "type": "BadRequestError", "code": 400}
    assert type(failure(400, {"error": problem})) is RejectedError


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (429, {"message": "check your plan", "code": "insufficient_quota"}),
        (429, {"message": "check your plan", "type": "insufficient_quota", "code": None}),
        (403, {"message": "not active", "code": "billing_not_active"}),
        (400, {"message": "Your credit balance is too low to access the API.", "type": "invalid_request_error"}),
    ],
)
def test_an_account_without_money_will_not_recover_by_waiting(status, problem) -> None:
    assert type(failure(status, {"error": problem})) is OutOfCreditError


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": MINUTE_LATER, "date": DATE}, 60.0),
        ({"retry-after": MINUTE_LATER}, None),
        ({"retry-after": DATE, "date": MINUTE_LATER}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1.0),
    ],
)
def test_how_long_a_server_asks_to_wait(headers, seconds) -> None:
    assert retry_after_seconds(headers) == seconds


@pytest.mark.parametrize("zone", ["+99999999999", "-9999", "+2360"])
def test_a_wait_until_no_time_that_there_is_is_none(zone) -> None:
    asked = retry_after_seconds({"retry-after": f"Wed, 21 Oct 9999 07:28:00 {zone}", "date": DATE})
    assert asked is None or asked > 0
