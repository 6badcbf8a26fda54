"""The other side of `flowevolve.llm.transports.wire`: requests that a server reads, and answers that it writes."""

from __future__ import annotations

import json
import math
import struct
from base64 import b64encode
from collections.abc import Mapping, Sequence

from aiohttp import web

from flowevolve._util.json_types import JSON
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    LLMError,
    Message,
    OutOfCreditError,
    OverloadedError,
    RefusedError,
    ServerError,
    UnreachableError,
    Usage,
)

PIECES = 32
"""A streamed text is sent in at most this many pieces."""

UNREADABLE = (ValueError, TypeError, KeyError, RecursionError)
"""The errors of decoding and reading a body that is not a valid request."""

_LARGEST = 2.0**64
_ROLES = ("system", "user", "assistant")
_OF_MESSAGES = ("role", "content")
_LIMITS = ("max_completion_tokens", "max_tokens")
_READ = ("model", "messages", "temperature", *_LIMITS, "seed", "stop", "priority", "stream", "stream_options")


def read_request(body: object) -> ChatRequest:
    """Read a chat request from a decoded body.

    Raises:
        ValueError, TypeError, KeyError: if the body does not have the form of a chat request (`UNREADABLE`).
    """
    if not isinstance(body, dict):
        raise TypeError("the body must be a JSON object")
    messages = body["messages"]
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages must be a list with at least one message")
    most = body.get("max_completion_tokens", body.get("max_tokens"))
    return ChatRequest(
        model=str(body["model"]),
        messages=tuple(_message(message) for message in messages),
        temperature=_number("temperature", body.get("temperature")),
        max_tokens=_whole_number("max_tokens", most),
        seed=_whole_number("seed", body.get("seed")),
        stop=_stops(body.get("stop")),
        priority=_whole_number("priority", body.get("priority")),
        extra={name: value for name, value in body.items() if name not in _READ},
        stream=bool(body.get("stream")),
    )


def read_embedding(body: object) -> EmbedRequest:
    """Read a request to embed one text or a list of texts. Raises what `read_request` raises.

    The request's encoding of the vectors (`wants_base64`) is not read, as it concerns only this server's answer.
    """
    if not isinstance(body, dict):
        raise TypeError("the body must be a JSON object")
    texts = body["input"]
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError("input must be a text or a list with at least one text")
    extra = {name: value for name, value in body.items() if name not in ("model", "input", "encoding_format")}
    return EmbedRequest(str(body["model"]), tuple(texts), extra)


def wants_usage(body: Mapping[str, object]) -> bool:
    """Whether the request asks for token counts at the end of the stream."""
    match body.get("stream_options"):
        case {"include_usage": True}:
            return True
    return False


def wants_base64(body: Mapping[str, object]) -> bool:
    """Whether the request asks for vectors in base64, as OpenAI's SDK does by default."""
    return body.get("encoding_format") == "base64"


def answer_body(reply: ChatReply, number: int, *, usage: bool = True, choices: bool = True) -> bytes:
    """The body of a whole answer. ``number`` counts the server's answers.

    Without ``usage`` or ``choices`` it lacks these, as the answer of a faulty server may.
    """
    message: dict[str, JSON] = {"role": "assistant", "content": reply.text}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    choice: dict[str, JSON] = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    if reply.logprobs is not None:
        choice["logprobs"] = reply.logprobs
    body: dict[str, JSON] = {**_head(reply.model, number, "chat.completion"), "choices": [choice] if choices else []}
    if usage:
        body["usage"] = _usage(reply.usage)
    return json.dumps(body).encode()


class StreamEvents:
    """The server-sent events of a streamed answer. ``number`` counts the server's answers."""

    def __init__(self, model: str, number: int) -> None:
        self._head = _head(model, number, "chat.completion.chunk")

    def thinking(self, text: str) -> bytes:
        """The event that carries the model's thinking."""
        return self._event(delta={"role": "assistant", "reasoning_content": text}, finish_reason=None)

    def pieces(self, text: str) -> list[bytes]:
        """The events that carry the text."""
        size = 1 + len(text) // PIECES
        parts = [text[start : start + size] for start in range(0, len(text), size)] or [""]
        return [self._event(delta={"role": "assistant", "content": part}, finish_reason=None) for part in parts]

    def end(self, reply: ChatReply, *, usage: bool) -> bytes:
        """The events that come after the text."""
        logprobs: dict[str, JSON] = {} if reply.logprobs is None else {"logprobs": reply.logprobs}
        last = self._event(delta={}, finish_reason=reply.finish_reason, **logprobs)
        return last + self.close(reply.usage if usage else None)

    def close(self, usage: Usage | None) -> bytes:
        """The last events of a stream. A stream without choices consists of these alone."""
        last = b"data: [DONE]\n\n"
        return last if usage is None else _event({**self._head, "choices": [], "usage": _usage(usage)}) + last

    def _event(self, **choice: JSON) -> bytes:
        return _event({**self._head, "choices": [{"index": 0, **choice}]})


def embeddings_answer(reply: EmbedReply, *, base64: bool) -> web.Response:
    """The answer with these vectors: as lists of numbers, or their 32-bit floats in base64."""
    data: list[JSON] = [
        {"object": "embedding", "index": index, "embedding": _in_base64(vector) if base64 else list(vector)}
        for index, vector in enumerate(reply.vectors)
    ]
    usage: JSON = {"prompt_tokens": reply.usage.prompt_tokens, "total_tokens": reply.usage.prompt_tokens}
    return web.json_response({"object": "list", "data": data, "model": reply.model, "usage": usage})


def models_answer(names: Sequence[str], owner: str) -> web.Response:
    """The answer with the list of models."""
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": owner} for name in names]
    return web.json_response({"object": "list", "data": listed})


def error_answer(error: LLMError) -> web.Response:
    """The answer to a request that ended with this error at the server."""
    match error:
        case OverloadedError():
            headers = {} if error.retry_after is None else {"Retry-After": str(math.ceil(error.retry_after))}
            return _error(error.status or 429, "RateLimitError", str(error), headers)
        case UnreachableError():
            return _error(504, "GatewayTimeoutError", str(error))
        case OutOfCreditError():  # a 429 would not say this without its code
            return _error(402, "InsufficientQuotaError", str(error))
        case RefusedError():
            return _error(_status(error, 400, 404), "NotFoundError", str(error))
        case ServerError():
            return _error(_status(error, 500, 500), "InternalServerError", str(error))
        case _:
            return _error(400, "BadRequestError", str(error))


def unreadable_answer(error: Exception) -> web.Response:
    """The answer to a request that can't be read because of this error, which is one of `UNREADABLE`."""
    match error:
        case KeyError():
            reason = f"{error.args[0]} is missing"
        case RecursionError():
            reason = "it is nested too deeply"
        case _:
            reason = str(error)
    return _error(400, "BadRequestError", f"invalid request: {reason}")


def _status(error: LLMError, hundreds: int, otherwise: int) -> int:
    """The status of an error if it is among the 100 from ``hundreds`` on; ``otherwise`` if not."""
    return error.status if error.status is not None and hundreds <= error.status < hundreds + 100 else otherwise


def _error(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"error": {"message": message, "type": kind, "param": None, "code": status}}
    return web.json_response(body, status=status, headers=headers)


def _in_base64(vector: Sequence[float]) -> str:
    return b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _event(body: Mapping[str, JSON]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _head(model: str, number: int, kind: str) -> dict[str, JSON]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": model}


def _usage(usage: Usage) -> JSON:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _number(name: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:  # nor is NaN
        raise ValueError(f"{name} must be a number")
    return value


def _whole_number(name: str, value: object) -> int | None:
    number = _number(name, value)
    if number is None:
        return None
    if number != int(number):
        raise ValueError(f"{name} must be a whole number")
    return int(number)


def _stops(stop: object) -> tuple[str, ...]:
    """The texts that end an answer; a single one may be given without a list."""
    stops = [] if stop is None else [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not all(isinstance(text, str) for text in stops):
        raise ValueError("stop must be a text or a list of texts")
    return tuple(stops)


def _message(message: object) -> Message:
    if (
        not isinstance(message, dict)
        or message.get("role") not in _ROLES
        or not isinstance(message.get("content"), str)
    ):
        raise ValueError(f"a message needs a role among {', '.join(_ROLES)} and a text content")
    beyond = next((name for name, value in message.items() if name not in _OF_MESSAGES and value is not None), None)
    if beyond is not None:
        raise ValueError(f"a message may have a role and a text content here, and its {beyond!r} would be lost")
    return Message(message["role"], message["content"])
