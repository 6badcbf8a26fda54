"""The wire format of the chat completions API, which all transports share.

A request is encoded as a body, and the body of an answer is decoded as a `ChatReply`. Bodies are checked, as many
different servers offer this API: a reply must have a text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard

from flowevolve._util.json_types import JSON
from flowevolve._util.secrets import SURELY_A_KEY, redacted
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    ServerError,
)
from flowevolve.llm.transports.bounded import DEFAULT_BOUND, ReplyBound
from flowevolve.llm.transports.failures import decode, start_of, status_error
from flowevolve.llm.usage import usage_in

MODELS_SECONDS = 25.0
"""How long a transport waits for the list of models: less than `flowevolve.llm.client.reachability.CHECK_SECONDS`."""

# Servers on uvicorn close idle connections after 5 s, which loses a request sent at that moment, so we close first.
KEEPALIVE_SECONDS = 4.0

# A reply may have no text where the tokens ran out while the model still thought, or where a filter removed the text.
_EMPTY_ANSWERS = ("length", "content_filter")
# The finish reasons with which servers other than OpenAI's say that the tokens ran out.
_LENGTH = ("max_tokens", "max_output_tokens", "model_length")

_STATUS = re.compile(r"[0-9]{3}")
_MOST_MODELS, _LONGEST_NAME = 10_000, 300
_LARGEST = sys.float_info.max


def request_body(request: ChatRequest) -> dict[str, JSON]:
    """The body of a request, without fields that are not set. Fields of ``extra`` override others."""
    body: dict[str, JSON] = {
        "model": request.model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.priority is not None:
        body["priority"] = request.priority
    if request.stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    body.update(request.extra)
    return body


def embed_body(request: EmbedRequest) -> dict[str, JSON]:
    """The body of a request for embeddings. Fields of ``extra`` override others."""
    return {"model": request.model, "input": list(request.texts), **request.extra}


def embed_reply(
    content: bytes,
    request: EmbedRequest,
    headers: Mapping[str, str] | None = None,
    *,
    bound: ReplyBound = DEFAULT_BOUND,
) -> EmbedReply:
    """The vectors in the body of an answer, in the order of the request's texts.

    Raises:
        ServerError: unless there is one vector for each text, all of the same length and of finite numbers.
        RejectedError: if the answer exceeds the bound.
        LLMError: if the body reports an error.
    """
    answer = _answer_in(content, bound)
    usage = replace(usage_in(answer.get("usage")), completion_tokens=0)
    match answer:
        case {"data": list(entries)}:
            vectors = _vectors(entries, len(request.texts))
            if vectors is not None:
                return EmbedReply(vectors, usage, _name(answer.get("model"), request.model), headers=headers)
    raise ServerError(f"the answer does not have one vector for each text: {start_of(content)}", usage=usage)


def _vectors(entries: list[JSON], count: int) -> tuple[tuple[float, ...], ...] | None:
    """One vector for each of ``count`` texts, all of the same length; None if the entries are not that."""
    found: dict[int, tuple[float, ...]] = {}
    for place, entry in enumerate(entries):
        match entry:
            case {"embedding": list(numbers), **more}:
                vector = tuple(float(number) for number in numbers if _is_number(number))
                index = more.get("index", place)
                if isinstance(index, int) and len(vector) == len(numbers):
                    found[index] = vector
    vectors = tuple(found.get(index, ()) for index in range(count))
    lengths = {len(vector) for vector in vectors}
    return vectors if len(lengths) == 1 and 0 not in lengths else None


def _is_number(value: JSON) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and abs(value) <= _LARGEST


def chat_reply(
    content: bytes, model: str, headers: Mapping[str, str] | None = None, *, bound: ReplyBound = DEFAULT_BOUND
) -> ChatReply:
    """The reply in the body of an answer; ``model`` is the requested one, used where the answer does not name its own.

    Raises:
        ServerError: if there is no reply in it.
        RejectedError: if the answer exceeds the bound.
        LLMError: if the body reports an error.
    """
    return reply_in(_answer_in(content, bound), model, content, headers, bound=bound)


def reply_in(
    answer: Mapping[str, JSON],
    model: str,
    content: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    bound: ReplyBound = DEFAULT_BOUND,
) -> ChatReply:
    """As `chat_reply`, for an answer that was decoded from ``content``.

    A missing text counts as an empty reply if the answer was cut off or filtered, or if it is complete and the server
    reports tokens or thinking for it: a repeated request would only cost and return the same.
    """
    usage = usage_in(answer.get("usage"))
    choice = _first_choice(answer)
    message = choice.get("message")
    if isinstance(message, dict):
        content_field, finish_reason = message.get("content"), _finish_reason(choice)
        text, thinking = text_in(content_field), thinking_in(message)
        was_written = finish_reason == "stop" and (usage.total_tokens or thinking)
        if content_field is None and (finish_reason in _EMPTY_ANSWERS or was_written):
            text = ""
        if text is not None:
            text, thinking = redacted(text, SURELY_A_KEY), redacted(thinking.strip(), SURELY_A_KEY)
            name, logprobs = _name(answer.get("model"), model), choice.get("logprobs")
            reply = ChatReply(text, usage, finish_reason, name, headers=headers, logprobs=logprobs, thinking=thinking)
            bound.check_reply(reply)
            return reply
    raise ServerError(f"the answer has no text: {start_of(content)}", usage=usage)


def _finish_reason(choice: Mapping[str, JSON]) -> str:
    reason = _name(choice.get("finish_reason"), "stop")
    return "length" if reason.lower() in _LENGTH else reason


def _first_choice(answer: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The first choice of an answer; an empty one if there is none."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def text_in(content: JSON) -> str | None:
    """The text in a message's ``content``, which is a string or a list with text parts; None if there is none."""
    match content:
        case str():
            return content
        case [*parts]:
            texts = [part["text"] for part in parts if isinstance(part, dict) and part.get("type") == "text"]
            return "".join(text for text in texts if isinstance(text, str))
    return None


def thinking_in(message: Mapping[str, JSON]) -> str:
    """The model's thinking in a message or a piece of one; empty if there is none.

    vLLM, SGLang and OpenRouter send it as ``reasoning``, DeepSeek and older servers as ``reasoning_content`` (some send
    both, with the same text), and Mistral as parts of the content.
    """
    for name in ("reasoning_content", "reasoning"):
        thoughts = message.get(name)
        if isinstance(thoughts, str) and thoughts:
            return thoughts
    parts = message.get("content")
    if not isinstance(parts, list):
        return ""
    thoughts = [part.get("thinking") for part in parts if isinstance(part, dict) and part.get("type") == "thinking"]
    return "".join(text_in(thought) or "" for thought in thoughts)


def _answer_in(content: bytes, bound: ReplyBound) -> dict[str, JSON]:
    """The object in the body of an answer; an empty one if the body is something else."""
    answer = decode(content, bound)
    if not isinstance(answer, dict):
        return {}
    error = error_in_body(answer, content)
    if error is not None:
        raise error
    return answer


def error_in_body(body: Mapping[str, JSON], content: bytes) -> LLMError | None:
    """The error reported in a body whose HTTP status was 200; None if there is none.

    The error's code is taken as a status if it is a number. ``content`` is the body before it was decoded.
    """
    if not body.get("error") and body.get("object") != "error":
        return None
    match body:
        case {"error": {"code": (int() | str()) as code}} | {"code": (int() | str()) as code}:
            status = int(code) if _STATUS.fullmatch(str(code)) else 0
        case _:
            status = 0
    if 400 <= status < 600:
        return status_error(status, "", {}, content)
    return ServerError(f"the server broke off the answer: {start_of(content)}", usage=usage_in(body.get("usage")))


def model_names(content: bytes, *, bound: ReplyBound = DEFAULT_BOUND) -> tuple[str, ...]:
    """The names in a list of models: at most the first `_MOST_MODELS`, without those longer than `_LONGEST_NAME`.

    Raises:
        ServerError: if the body is no such list.
        RejectedError: if the answer exceeds the bound.
    """
    match decode(content, bound):
        case {"data": list(entries)}:
            listed = entries[:_MOST_MODELS]
            names = (str(entry["id"]) for entry in listed if isinstance(entry, dict) and "id" in entry)
            return tuple(redacted(name) for name in names if len(name) <= _LONGEST_NAME)
    raise ServerError("the answer is not a list of models; is the base URL that of an OpenAI-compatible API?")


def _name(value: object, otherwise: str) -> str:
    return redacted(value)[:_LONGEST_NAME] if isinstance(value, str) else otherwise
