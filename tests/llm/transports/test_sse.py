"""Answers in pieces: however they are cut and whatever servers leave out, the reply is that of an answer at once."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from flowevolve.core.model import (
    ChatReply,
    OverloadedError,
    RejectedError,
    ServerError,
    UnreachableError,
    Usage,
)
from flowevolve.llm.transports.sse import StreamedAnswer

DONE = "data: [DONE]\n\n"
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}


def event(**body):
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


def text(content, finish_reason=None, **more):
    return event(
        model="m-1", choices=[{"index": 0, "delta": {"content": content}, "finish_reason": finish_reason, **more}]
    )


END = text(None, "stop")


def thought(name, piece):
    return event(model="m-1", choices=[{"index": 0, "delta": {name: piece, "content": None}}])


SPENT = event(model="m-1", choices=[], usage=USAGE)


def read(*pieces):
    answer = StreamedAnswer()
    for piece in pieces:
        answer.feed(piece if isinstance(piece, bytes) else piece.encode())
    return answer.reply("m")


@given(
    content=st.text(),
    cuts=st.lists(st.integers(0, 3000), max_size=20),
    newline=st.sampled_from(["\n", "\r\n"]),
    comment=st.sampled_from(["", ": still there\n\n", "event: message\nid: 7\nretry: 3000\n"]),
    done=st.sampled_from(["", DONE, "data: [DONE]"]),
    size=st.integers(1, 5),
)
def test_cut_anywhere_it_is_the_same_reply(content, cuts, newline, comment, done, size) -> None:
    parts = [content[start : start + size] for start in range(0, len(content), size)]
    events = [text(""), *map(text, parts), END, SPENT]
    body = (comment.join(["", *events]) + done).replace("\n", newline).encode()
    at = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [body[start:end] for start, end in pairwise(at)]
    assert read(*pieces) == ChatReply(content, Usage(9, 4, 5), "stop", "m-1")


def test_a_stream_without_usage_costs_nothing_that_is_known() -> None:
    assert read(text("hi"), END, DONE).usage == Usage()


def test_usage_beside_the_text_counts_as_told_last() -> None:
    early, late = ({**USAGE, "completion_tokens": tokens} for tokens in (1, 2))
    first = event(choices=[{"delta": {"content": "a"}}], usage=early)
    last = event(choices=[{"delta": {}, "finish_reason": "length"}], usage=late)
    assert read(first, last, DONE) == ChatReply("a", Usage(9, 2, 5), "length", "m")


def test_a_stream_that_says_done_needs_no_reason() -> None:
    assert read(text("hi"), DONE).finish_reason == "stop"


def test_what_comes_after_done_does_not_count() -> None:
    assert read(text("hi"), DONE, text(" there"), "data: {\n\n").text == "hi"


def test_an_event_over_several_lines() -> None:
    assert read('data: {"choices": [{"index": 0,\ndata: "delta": {"content": "hi"}}]}\n\n', DONE).text == "hi"


def test_other_choices_are_left_alone() -> None:
    other = event(choices=[{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}])
    assert read(text("yes"), other, END, DONE) == ChatReply("yes", Usage(), "stop", "m-1")


def test_thinking_without_a_text_is_an_empty_answer_where_the_tokens_ran_out() -> None:
    thinking = event(choices=[{"delta": {"reasoning_content": "hmm"}}])
    assert read(thinking, event(choices=[{"delta": {}, "finish_reason": "length"}]), DONE).text == ""


def test_thinking_that_was_paid_for_is_an_empty_answer() -> None:
    thinking = event(choices=[{"delta": {"reasoning_content": "hmm"}}])
    reply = read(thinking, END, SPENT, DONE)
    assert (reply.text, reply.usage) == ("", Usage(9, 4, 5))


def test_pieces_in_parts_are_read() -> None:
    assert read(text([{"type": "thinking", "thinking": []}]), text([{"type": "text", "text": "hi"}]), END).text == "hi"


def test_log_probabilities_come_in_one_piece() -> None:
    told = [{"token": token, "logprob": -1.0} for token in "ab"]
    pieces = [text(each["token"], logprobs={"content": [each], "refusal": None}) for each in told]
    reply = read(*pieces, text(None, "stop", logprobs=None), DONE)
    assert reply.logprobs == {"content": told, "refusal": None}


@pytest.mark.parametrize("newline", ["\n", ""])
def test_a_server_that_cannot_stream_answers_at_once(newline) -> None:
    body = json.dumps({"choices": [{"message": {"content": "hi"}}], "usage": USAGE}, indent=2 if newline else None)
    assert read(body[:11], body[11:]) == ChatReply("hi", Usage(9, 4, 5), "stop", "m")


@pytest.mark.parametrize(
    ("told", "error_class"),
    [
        ({"error": {"message": "out of memory", "code": 500}}, ServerError),
        ({"error": {"message": "out of memory", "code": None}}, ServerError),
        ({"error": "out of memory"}, ServerError),
        ({"object": "error", "message": "out of memory", "code": 400}, RejectedError),
        ({"error": {"message": "out of memory", "code": "429"}, "choices": []}, OverloadedError),
    ],
)
def test_an_error_inside_the_stream(told, error_class) -> None:
    with pytest.raises(error_class, match="out of memory") as caught:
        read(text("hi"), event(**told), DONE)
    assert type(caught.value) is error_class


@pytest.mark.parametrize("body", [text("hi"), text("hi") + SPENT, ": nothing but a comment\n\n" + text("hi")])
def test_a_body_that_ends_before_the_answer(body) -> None:
    with pytest.raises(UnreachableError, match="broke off"):
        read(body)


@pytest.mark.parametrize(
    "body",
    ["", "\n\n", ": nothing\n\n", "<html>\n</html>", DONE, SPENT + DONE, "data: {\n\n", "data: 5\n\n", text("hi")[:-9]],
)
def test_a_body_that_is_no_answer(body) -> None:
    with pytest.raises(ServerError):
        read(body)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thoughts_in_pieces_are_joined_apart_from_the_text(name) -> None:
    told = read(thought(name, "2 "), thought(name, "+ 2"), text("4"), END, SPENT, DONE)
    assert (told.text, told.thinking) == ("4", "2 + 2")


def test_a_stream_that_was_cut_while_thinking_has_no_text() -> None:
    told = read(thought("reasoning", "Let me"), text(None, "length"), SPENT, DONE)
    assert (told.text, told.thinking, told.finish_reason) == ("", "Let me", "length")
