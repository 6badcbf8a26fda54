"""The server's side of the API: what it reads, and with which answers it says what."""

from __future__ import annotations

import json

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
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
from flowevolve.llm.transports import server_side
from flowevolve.llm.transports.failures import status_error
from flowevolve.llm.transports.wire import chat_reply

BODY: dict[str, JSON] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_fields_of_messages_without_a_value_say_nothing() -> None:
    message: dict[str, JSON] = {"role": "assistant", "content": "hello", "tool_calls": None}
    assert server_side.read_request({**BODY, "messages": [message]}).messages == (Message("assistant", "hello"),)


def test_every_field_of_a_request_is_read() -> None:
    body: dict[str, JSON] = {
        **BODY,
        "temperature": 0.5,
        "max_completion_tokens": 7,
        "seed": 3,
        "stop": ["END"],
        "priority": -2,
        "stream": True,
        "stream_options": {"include_usage": True},
        "top_p": 0.9,
    }
    assert server_side.read_request(body) == ChatRequest(
        "m",
        (Message("user", "hello"),),
        temperature=0.5,
        max_tokens=7,
        seed=3,
        stop=("END",),
        priority=-2,
        extra={"top_p": 0.9},
        stream=True,
    )
    assert server_side.wants_usage(body)
    assert server_side.read_request({**BODY, "stop": "END"}).stop == ("END",)
    assert server_side.read_embedding({"model": "e", "input": "a", "dimensions": 8}) == EmbedRequest(
        "e", ("a",), {"dimensions": 8}
    )


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("messages", [], "messages must be a list with at least one"),
        ("messages", [{"role": "user", "content": 3}], "a message needs a role"),
        (
            "messages",
            [{"role": "user", "content": "a", "name": "b"}],
            "a message may have a role and a text content here",
        ),
        ("temperature", "hot", "temperature must be a number"),
        ("temperature", True, "temperature must be a number"),
        ("temperature", float("nan"), "temperature must be a number"),
        ("temperature", 10**400, "temperature must be a number"),
        ("max_tokens", float("inf"), "max_tokens must be a number"),
        ("max_tokens", 1.5, "max_tokens must be a whole number"),
        ("seed", [1], "seed must be a number"),
        ("priority", "first", "priority must be a number"),
        ("stop", [3], "stop must be a text or a list of texts"),
    ],
)
def test_a_field_that_can_not_be_is_told(field: str, value: JSON, said: str) -> None:
    with pytest.raises(server_side.UNREADABLE) as caught:
        server_side.read_request({**BODY, field: value})
    answer = server_side.unreadable_answer(caught.value)
    assert answer.status == 400
    assert f"invalid request: {said}" in (answer.text or "")


@pytest.mark.parametrize(("body", "said"), [("[]", "must be a JSON object"), ("{}", "messages is missing"), ("{", "")])
def test_what_is_no_request_is_told(body: str, said: str) -> None:
    with pytest.raises(server_side.UNREADABLE) as caught:
        server_side.read_request(json.loads(body))
    assert said in (server_side.unreadable_answer(caught.value).text or "")


def test_a_body_that_is_nested_too_deeply_is_told() -> None:
    with pytest.raises(server_side.UNREADABLE) as caught:
        server_side.read_request(json.loads("[" * 100_000))
    assert "nested too deeply" in (server_side.unreadable_answer(caught.value).text or "")


def test_an_answer_is_read_as_it_was() -> None:
    reply = ChatReply(
        "text", Usage(9, 4, 5), "length", "m", logprobs={"content": [{"token": "a", "logprob": -0.5}]}, thinking="well"
    )
    assert chat_reply(server_side.answer_body(reply, 1), "m") == reply


@pytest.mark.parametrize(
    "error",
    [
        OverloadedError("busy", status=503, retry_after=7),
        OverloadedError("too fast"),
        UnreachableError("no answer"),
        ServerError("broken"),
        ServerError("broken", status=501),
        ServerError("odd", status=304),
        RejectedError("too long", status=413),
        RefusedError("wrong key", status=401),
        OutOfCreditError("no money", status=429),
        RefusedError("makes no embeddings"),
    ],
)
def test_an_error_is_read_as_one_of_its_kind(error: LLMError) -> None:
    answer = server_side.error_answer(error)
    read = status_error(
        answer.status, "", {name.lower(): value for name, value in answer.headers.items()}, (answer.text or "").encode()
    )
    assert type(read) is type(error)
    assert str(error) in str(read)
    assert read.retry_after == error.retry_after
