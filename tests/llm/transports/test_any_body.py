"""Whatever a body or a header says, it is read as a reply or as an error of its kind, and its numbers can be counted."""

import json

import pytest
from hypothesis import given, strategies as st

from flowevolve.core.model import EmbedRequest, LLMError, ServerError, Usage
from flowevolve.llm.scheduling.model_rates import ModelRates
from flowevolve.llm.scheduling.rate_headers import LIMIT_KINDS, allowances
from flowevolve.llm.transports.failures import retry_after_seconds, status_error
from flowevolve.llm.transports.sse import StreamedAnswer
from flowevolve.llm.transports.wire import chat_reply, embed_reply, model_names

DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
HUGE = st.sampled_from(
    [0, -1, 2**31, 2**63, 10**18, 10**400, -(10**400), 1e308, 0.5, True, None, "12", "9" * 5000, "²"]
)
BOOKS = ["usage", "prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "cached_tokens"]
MESSAGES = [
    "choices",
    "message",
    "content",
    "index",
    "delta",
    "finish_reason",
    "logprobs",
    "reasoning",
    "text",
    "thinking",
]
OTHERS = ["model", "error", "code", "param", "type", "detail", "loc", "data", "embedding", "id", "object"]
NAMES = st.sampled_from([*BOOKS, *MESSAGES, *OTHERS])
ANY = st.recursive(
    HUGE | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
ANSWERS = st.builds(
    lambda message, usage, more: {"choices": [{"message": message, **more}], "usage": usage, "data": [message], **more},
    st.dictionaries(NAMES, ANY, max_size=3),
    st.dictionaries(NAMES, HUGE, max_size=4) | HUGE,
    st.dictionaries(NAMES, ANY, max_size=3),
)


def read_in_every_way(body) -> list[object]:
    """What comes of a body, whatever it was an answer to; errors of any other kind than `LLMError` are raised."""
    content, request = json.dumps(body).encode(), EmbedRequest("m", ("a",))
    streamed = StreamedAnswer()
    found: list[object] = []
    for read in (
        lambda: chat_reply(content, "m"),
        lambda: embed_reply(content, request),
        lambda: model_names(content),
        lambda: streamed.feed(b"data: " + content + b"\n\n"),
        lambda: streamed.reply("m"),
    ):
        try:
            found.append(read())
        except LLMError as error:
            found.append(error)
    found += [status_error(status, "", {}, content) for status in (400, 422, 429, 500)]
    return found


@given(ANY | ANSWERS)
def test_every_body_is_a_reply_or_an_error_of_its_kind(body) -> None:
    for found in read_in_every_way(body):
        usage = getattr(found, "usage", Usage())
        assert 0 <= usage.cached_tokens <= usage.prompt_tokens <= 10**8
        assert 0 <= usage.completion_tokens <= 10**8


@pytest.mark.parametrize("code", ["9" * 5000, "²²²", 10**18, -400])
def test_an_error_with_a_code_that_is_no_status_is_the_servers(code) -> None:
    with pytest.raises(ServerError, match="broke off the answer"):
        chat_reply(json.dumps({"error": {"message": "out of order", "code": code}}).encode(), "m")


@pytest.mark.parametrize("number", [10**400, -(10**400), 1e999], ids=["huge", "minus huge", "infinite"])
def test_a_vector_of_numbers_beyond_all_is_none(number) -> None:
    body = json.dumps({"data": [{"embedding": [1, number]}]}).encode()
    with pytest.raises(ServerError, match="does not have one vector for each text"):
        embed_reply(body, EmbedRequest("m", ("a",)))


@given(
    st.dictionaries(
        st.sampled_from(
            [f"x-ratelimit-{part}-{kind}" for part in ("limit", "remaining", "reset") for kind in LIMIT_KINDS]
            + [
                "retry-after",
                "retry-after-ms",
                "date",
                "anthropic-ratelimit-requests-limit",
                "anthropic-ratelimit-requests-remaining",
                "anthropic-ratelimit-requests-reset",
            ]
        ),
        st.sampled_from(
            [
                "0",
                "1",
                "-1",
                "nan",
                "inf",
                "1e308",
                "9" * 5000,
                "9" * 400 + "d",
                "1h",
                "²",
                "",
                DATE,
                "9999-12-31T23:59:59-23:59",
                "0001-01-01T00:00:00+23:59",
                "Fri, 31 Dec 9999 23:59:59 -2359",
            ]
        ),
    )
)
def test_headers_of_any_kind_give_waits_that_can_be_counted(headers) -> None:
    wait = retry_after_seconds(headers)
    assert wait is None or 0 <= wait < float("inf")
    rates = ModelRates(longest_pause=300.0)
    sent = rates.take(0.0, 10.0)
    rates.note_headers(sent, 1.0, allowances(headers))
    rates.refused(sent, 1.0, wait)
    assert 0 <= rates.wait(1.0, 10.0) <= 301
