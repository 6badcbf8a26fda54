"""The chat completions API as bytes: what every transport sends, and what it makes of what comes back.

A request becomes a body here, an answer a `ChatReply`, and every way a call can fail exactly one of the classes in
`flowevolve.llm.types`. Bodies are checked, as servers of many makes speak this API: a reply must have a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import cast

import aiohttp
import anyio

from flowevolve.clock import now
from flowevolve.llm.keys import redacted
from flowevolve.llm.types import (
    JSON,
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    UnreachableError,
    Usage,
)
from flowevolve.llm.usage import usage_in

CHAT_PATH = "/chat/completions"
EMBEDDINGS_PATH = "/embeddings"
MODELS_PATH = "/models"
"""All below the base URL."""

MODELS_SECONDS = 30.0
"""How long a transport's ``models`` waits."""

# Servers on uvicorn close idle connections after 5 s; a request sent at that moment is lost, so we let go first.
KEEPALIVE_SECONDS = 4.0

# How much of an unexpected answer goes into an error message, in characters.
_SHOWN = 500

# How much of it is looked at, in bytes: more than is shown and a key that begins there.
_READ = 2**14

# A missing text is an answer where the tokens ran out while the model still thought, or where a filter took the text.
_EMPTY_ANSWERS = ("length", "content_filter")

_UNKNOWN_MODEL = re.compile(
    r"(unknown|invalid|no such) model\b|\bmodel\b.{0,200}?\b(does not exist|doesn't exist|not found)|not a valid model",
    re.IGNORECASE | re.DOTALL,
)

# Made once: `json.dumps` with these options would make one for every call.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))

# No connection, one that broke, an address that is none, and redirects in a circle: nothing was answered.
_UNANSWERED = (
    aiohttp.ClientConnectionError,
    aiohttp.ClientPayloadError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
    aiohttp.TooManyRedirects,
    TimeoutError,
)


def request_body(request: ChatRequest) -> dict[str, JSON]:
    """The body of a request; what was not asked for is left out. ``extra`` overrides."""
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


def encode(request: ChatRequest) -> bytes:
    """The body of a request as JSON in UTF-8.

    Raises:
        ValueError: if a text has lone surrogates, or a number is infinite or not one.
    """
    return _ENCODER.encode(request_body(request)).encode()


def embed_body(request: EmbedRequest) -> dict[str, JSON]:
    """The body of a request for embeddings. ``extra`` overrides."""
    return {"model": request.model, "input": list(request.texts), **request.extra}


def encode_embed(request: EmbedRequest) -> bytes:
    """The body of a request for embeddings as JSON in UTF-8.

    Raises:
        ValueError: as `encode`.
    """
    return _ENCODER.encode(embed_body(request)).encode()


def embed_reply(content: bytes, request: EmbedRequest, headers: Mapping[str, str] | None = None) -> EmbedReply:
    """The vectors in the body of an answer, in the order of the request's texts.

    Raises:
        ServerError: if there is not one for every text, all of one length.
        LLMError: if the body tells of an error.
    """
    answer = _decode_answer(content)
    usage = replace(_usage_in(answer), completion_tokens=0)
    match answer:
        case {"data": list(entries), **rest}:
            vectors = _vectors(entries, len(request.texts))
            if vectors is not None:
                return EmbedReply(vectors, usage, _text(rest.get("model"), request.model), headers=headers)
    raise ServerError(f"the answer has no vectors for {len(request.texts)} texts: {start_of(content)}", usage=usage)


def _vectors(entries: list[JSON], count: int) -> tuple[tuple[float, ...], ...] | None:
    """One vector for each of ``count`` texts, all of one length; None if that is not what was sent."""
    found: dict[int, tuple[float, ...]] = {}
    for place, entry in enumerate(entries):
        match entry:
            case {"embedding": list(numbers), **more}:
                vector = tuple(float(number) for number in numbers if isinstance(number, int | float))
                index = more.get("index", place)
                if isinstance(index, int) and len(vector) == len(numbers):
                    found[index] = vector
    vectors = tuple(found.get(index, ()) for index in range(count))
    lengths = {len(vector) for vector in vectors}
    return vectors if len(lengths) == 1 and 0 not in lengths else None


def chat_reply(content: bytes, model: str, headers: Mapping[str, str] | None = None) -> ChatReply:
    """The reply in the body of an answer; ``model`` is the name asked for, which counts where none is given.

    Raises:
        ServerError: if there is none.
        LLMError: if the body tells of an error.
    """
    return reply_in(_decode_answer(content), model, content, headers)


def reply_in(answer: JSON, model: str, content: bytes, headers: Mapping[str, str] | None = None) -> ChatReply:
    """The reply in an answer that came as ``content``, as `chat_reply`.

    A missing text is an empty one where the server says that it took tokens to write it: the same request would bring,
    and cost, the same again.
    """
    usage = _usage_in(answer)
    match answer:
        case {"choices": [{"message": dict(message), **choice}, *_], **rest}:
            said, finish_reason = message.get("content"), _text(choice.get("finish_reason"), "stop")
            text = text_in(said)
            if said is None and (finish_reason in _EMPTY_ANSWERS or (finish_reason == "stop" and usage.total_tokens)):
                text = ""
            if text is not None:
                return ChatReply(
                    text,
                    usage,
                    finish_reason,
                    _text(rest.get("model"), model),
                    headers=headers,
                    logprobs=cast("JSON", choice.get("logprobs")),
                )
    raise ServerError(f"the answer has no text: {start_of(content)}", usage=usage)


def _usage_in(answer: JSON) -> Usage:
    return usage_in(answer.get("usage")) if isinstance(answer, dict) else Usage()


def text_in(content: JSON) -> str | None:
    """The text that a message's ``content`` has, all at once or in parts beside others; None if it has none."""
    match content:
        case str():
            return content
        case [*parts]:
            texts = [part["text"] for part in parts if isinstance(part, dict) and part.get("type") == "text"]
            return "".join(text for text in texts if isinstance(text, str))
    return None


def _decode_answer(content: bytes) -> JSON:
    answer = decode(content)
    error = error_in_body(answer, content) if isinstance(answer, dict) else None
    if error is not None:
        raise error
    return answer


def error_in_body(body: Mapping[str, JSON], content: bytes) -> LLMError | None:
    """The error that a body tells of though its status was 200: its code is a status, where it is a number.

    ``content`` is the body as it came. None if it tells of none.
    """
    if not body.get("error") and body.get("object") != "error":
        return None
    match body:
        case {"error": {"code": (int() | str()) as code}} | {"code": (int() | str()) as code}:
            status = int(code) if str(code).isdecimal() else 0
        case _:
            status = 0
    if 400 <= status < 600:
        return status_error(status, "", {}, content)
    return ServerError(f"the server broke off the answer: {start_of(content)}", usage=_usage_in(dict(body)))


def decode(content: bytes) -> JSON:
    """A body, or a part of one, that is JSON.

    Raises:
        ServerError: if it is not.
    """
    try:
        decoded: JSON = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ServerError(f"the answer is not JSON: {start_of(content)!r}") from error
    return decoded


def model_names(content: bytes) -> tuple[str, ...]:
    """The names in the body of an answer that lists models.

    Raises:
        ServerError: if it does not.
    """
    match decode(content):
        case {"data": list(entries)}:
            return tuple(str(entry["id"]) for entry in entries if isinstance(entry, dict) and "id" in entry)
    raise ServerError("the answer is not a list of models; is the base URL that of an OpenAI-compatible API?")


@contextmanager
def failures(seconds: float) -> Generator[None]:
    """Bound a call over aiohttp by its time, and raise what goes wrong with it as an error of ours.

    Raises:
        UnreachableError: if ``seconds`` pass, or nothing was answered.
        ServerError: if what came is not HTTP.
        RejectedError: if the request can't be sent as it is.
    """
    try:
        with anyio.CancelScope(deadline=now() + seconds) as scope:
            yield
    except _UNANSWERED as error:
        raise unreachable(error) from error
    except aiohttp.ClientHttpProxyError as error:  # its text has the proxy's address, with the password
        raise UnreachableError(f"no connection: the proxy answers {error.status} {error.message}") from error
    except aiohttp.ClientError as error:
        raise ServerError(f"the answer is not HTTP: {error}") from error
    except ValueError as error:
        raise RejectedError(f"the request can't be sent: {error}") from error
    if scope.cancelled_caught:
        raise UnreachableError(f"no complete answer within {seconds:g} s")


def unreachable(cause: BaseException) -> UnreachableError:
    """The error for a call that was not answered because of ``cause``."""
    return UnreachableError(f"no connection: {cause}")


def status_error(status: int, reason: str, headers: Mapping[str, str], content: bytes) -> LLMError:
    """The error for an answer whose status says that it failed. ``headers`` are looked up in lower case."""
    problem = _problem(content)
    # A key is taken out before the text is cut: a part of one would not be found any more.
    said = f"HTTP {status}: {redacted(_text(problem.get('message'), start_of(content)).strip())[:_SHOWN] or reason}"
    match status:
        case 401 | 402 | 403 | 404 | 405:
            return RefusedError(said, status=status)
        case 400 if _names_unknown_model(problem, said):
            return RefusedError(said, status=status)
        case 429 if problem.get("code") == "insufficient_quota":
            return RefusedError(said, status=status)  # OpenAI's way to say that the account has no money left
        case 429 | 503 | 529:  # the last is Anthropic's
            return OverloadedError(said, status=status, retry_after=retry_after_seconds(headers), headers=headers)
        case 408:
            return UnreachableError(said, status=status)
        case _ if 400 <= status < 500:
            return RejectedError(said, status=status)
        case _:
            return ServerError(said, status=status, retry_after=retry_after_seconds(headers))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """What ``retry-after-ms`` or, without it, ``Retry-After`` asks for.

    The latter is in seconds or a date, which is read by the server's own clock (``Date``).
    """
    asked = headers.get("retry-after", "")
    seconds = _number(headers.get("retry-after-ms", "")) / 1000
    if not isfinite(seconds):
        seconds = _number(asked)
    if not isfinite(seconds):
        try:
            seconds = (parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
        except (ValueError, TypeError):  # no date, or only one of the two has a time zone
            return None
    return max(0.0, seconds)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def start_of(content: bytes) -> str:
    """As much of a body as goes into an error message."""
    return redacted(content[:_READ].decode("utf-8", "replace"))[:_SHOWN]


def _text(value: object, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


def _problem(content: bytes) -> dict[str, JSON]:
    """What an answer with an error says of it: OpenAI has it under ``error``, others at the top."""
    try:
        body = decode(content)
    except ServerError:
        return {}
    match body:
        case {"error": dict(problem)} | dict(problem):
            return problem
    return {}


def _names_unknown_model(problem: Mapping[str, JSON], said: str) -> bool:
    return (
        problem.get("code") == "model_not_found"
        or problem.get("param") == "model"
        or _UNKNOWN_MODEL.search(said) is not None
    )
