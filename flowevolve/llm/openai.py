"""The transport over OpenAI's official SDK, for OpenAI and whatever speaks its chat completions API.

Every way a call can fail leaves here as exactly one of the classes in `flowevolve.llm.types`. The SDK's own retries are
off, and its reading of bodies is not relied on: it accepts any shape, while a reply must have a text to be one.

Needs ``openai[aiohttp]``, that is ``openai`` (with ``httpx2``) and ``aiohttp``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Protocol

import aiohttp
import anyio
from httpx2 import Limits, Response
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAioHttpClient
from openai.types.chat import ChatCompletionMessageParam

from flowevolve.llm.types import (
    JSON,
    ChatReply,
    ChatRequest,
    LLMError,
    Message,
    OverloadedError,
    RefusedError,
    RejectedError,
    ServerError,
    UnreachableError,
    Usage,
)

MODELS_SECONDS = 30.0
"""How long `OpenAITransport.models` waits."""

# Servers on uvicorn close idle connections after 5 s; a request sent at that moment is lost, so we let go first.
_KEEPALIVE_SECONDS = 4.0

# How much of an unexpected answer goes into an error message, in characters.
_SHOWN = 500

# A null text is an answer where the tokens ran out while the model was still thinking, or where a filter took the text.
_EMPTY_ANSWERS = ("length", "content_filter")

_UNKNOWN_MODEL = re.compile(
    r"(unknown|invalid|no such) model\b|\bmodel\b.{0,200}?\b(does not exist|doesn't exist|not found)|not a valid model",
    re.IGNORECASE | re.DOTALL,
)


class OpenAITransport:
    """Calls the chat completions API at ``base_url`` (with its ``/v1``).

    Without an ``api_key`` none is looked up in the environment, so that a key meant for OpenAI is never sent to
    another server. Times are wall-clock seconds.
    """

    def __init__(self, base_url: str, api_key: str | None, *, max_connections: int) -> None:
        self.base_url = base_url
        limits = Limits(
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=_KEEPALIVE_SECONDS,
        )
        self._client = AsyncOpenAI(
            base_url=base_url,
            api_key=api_key or "none",
            max_retries=0,
            timeout=None,  # the SDK's timeout starts anew with every byte read; ours is for the whole call
            http_client=DefaultAioHttpClient(limits=limits, timeout=None),
        )

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Make one call, as `flowevolve.llm.types.Transport.chat` says."""
        completions = self._client.chat.completions.with_raw_response
        body = await _fetch(
            completions.create(
                model=request.model,
                messages=[_message(message) for message in request.messages],
                extra_body=_options(request),
            ),
            timeout,
        )
        return _reply(body, request.model)

    async def models(self) -> tuple[str, ...]:
        """The model names the backend serves, as `flowevolve.llm.types.Transport.models` says."""
        body = await _fetch(self._client.models.with_raw_response.list(), MODELS_SECONDS)
        match body:
            case {"data": list(entries)}:
                return tuple(str(entry["id"]) for entry in entries if isinstance(entry, dict) and "id" in entry)
        raise ServerError("the answer is not a list of models; is the base URL that of an OpenAI-compatible API?")

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()


class _RawResponse(Protocol):
    @property
    def http_response(self) -> Response: ...


async def _fetch(call: Awaitable[_RawResponse], seconds: float) -> JSON:
    """Make a call of the SDK and decode the body of its response."""
    try:
        with anyio.fail_after(seconds):
            response = (await call).http_response
    except TimeoutError:
        raise UnreachableError(f"no complete answer within {seconds:g} s") from None
    except APIStatusError as error:
        raise _status_error(error) from error
    except APIConnectionError as error:
        raise UnreachableError(f"no connection: {error.__cause__ or error}") from error
    except aiohttp.ClientError as error:
        # What the SDK lets through: an answer that is not HTTP.
        raise ServerError(f"the answer is not HTTP: {error}") from error
    except UnicodeEncodeError as error:
        raise RejectedError(f"a message can't be sent as text: {error}") from error
    try:
        decoded: JSON = json.loads(response.content)
    except ValueError as error:
        raise ServerError(f"the answer is not JSON: {response.text[:_SHOWN]!r}", status=response.status_code) from error
    return decoded


def _message(message: Message) -> ChatCompletionMessageParam:
    match message.role:
        case "system":
            return {"role": "system", "content": message.content}
        case "user":
            return {"role": "user", "content": message.content}
        case "assistant":
            return {"role": "assistant", "content": message.content}


def _options(request: ChatRequest) -> dict[str, JSON]:
    options: dict[str, JSON] = {
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
        "stop": list(request.stop) or None,
        "priority": request.priority,
    }
    return {name: value for name, value in options.items() if value is not None} | dict(request.extra)


def _reply(body: JSON, model: str) -> ChatReply:
    match body:
        case {"choices": [{"message": {"content": (str() | None) as text}, **choice}, *_], **answer}:
            finish_reason = _text(choice.get("finish_reason"), "stop")
            if text is None and finish_reason in _EMPTY_ANSWERS:
                text = ""
            if text is not None:
                return ChatReply(text, _usage(answer.get("usage")), finish_reason, _text(answer.get("model"), model))
    raise ServerError(f"the answer has no text: {json.dumps(body)[:_SHOWN]}")


def _text(value: object, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


def _usage(usage: object) -> Usage:
    """What the server counted; zeros for what it left out."""
    match usage:
        case {"prompt_tokens_details": {"cached_tokens": int(cached)}}:
            pass
        case _:
            cached = 0
    match usage:
        case {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}:
            return Usage(prompt, completion, cached)
    return Usage()


def _status_error(error: APIStatusError) -> LLMError:
    status = error.status_code
    said = _server_words(error)
    match status:
        case 401 | 402 | 403 | 404 | 405:
            return RefusedError(said, status=status)
        case 400 if _names_unknown_model(error, said):
            return RefusedError(said, status=status)
        case 429 if error.code == "insufficient_quota":
            return RefusedError(said, status=status)  # OpenAI's way to say that the account has no money left
        case 429 | 503:
            return OverloadedError(said, status=status, retry_after=retry_after_seconds(error.response.headers))
        case 408:
            return UnreachableError(said, status=status)
        case _ if 400 <= status < 500:
            return RejectedError(said, status=status)
        case _:
            return ServerError(said, status=status)


def _server_words(error: APIStatusError) -> str:
    match error.body:
        case {"message": str(message)}:
            said = message
        case _:
            said = error.response.text
    return f"HTTP {error.status_code}: {said.strip()[:_SHOWN] or error.response.reason_phrase}"


def _names_unknown_model(error: APIStatusError, said: str) -> bool:
    return error.code == "model_not_found" or error.param == "model" or _UNKNOWN_MODEL.search(said) is not None


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """What ``Retry-After`` asks for: seconds, or a date, which is read by the server's own clock (``Date``)."""
    asked = headers.get("retry-after", "")
    try:
        seconds = float(asked)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
        except (ValueError, TypeError):  # no date, or only one of the two has a time zone
            return None
    return max(0.0, seconds) if isfinite(seconds) else None
