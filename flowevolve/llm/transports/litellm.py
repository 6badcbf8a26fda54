"""The transport over LiteLLM, which calls the APIs of Anthropic, Google, Bedrock and many others by the model's name.

LiteLLM only makes the calls: its own retries are off. It drops parameters that a model does not accept
(``drop_params``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Protocol, runtime_checkable

import aiohttp
from openai import APIConnectionError, APIError, APIStatusError

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve._util.secrets import hide_keys_of_environment
from flowevolve.core.model import ChatReply, ChatRequest, LLMError, RefusedError, ServerError
from flowevolve.llm.transports import failures, wire

_NO_PROVIDER = "LLM Provider NOT provided"
_NOT_KNOWN = 404


class _Answer(Protocol):
    def model_dump_json(self) -> str: ...


@runtime_checkable
class LiteLLM(Protocol):
    """The part of the package that is used."""

    suppress_debug_info: bool
    telemetry: bool

    async def acompletion(self, **request: JSON) -> _Answer: ...


def load_litellm() -> LiteLLM:
    """Import the package, set to print no hints, send no telemetry, and download no price list.

    Raises:
        InputError: if another module has its name.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    package: object = import_module("litellm")
    if not isinstance(package, LiteLLM):
        raise InputError(
            "llm.backend: what is imported as 'litellm' is another module of this name; remove or rename it, and pip "
            "install 'flowevolve[litellm]'"
        )
    package.suppress_debug_info = True
    package.telemetry = False
    return package


@runtime_checkable
class _WithHeaders(Protocol):
    """An exception that has the headers of the answer, if they are known."""

    litellm_response_headers: Mapping[str, str] | None


class LiteLLMTransport:
    """Calls the model that a request names, as ``anthropic/…``, ``gemini/…`` or ``bedrock/…``.

    Without an ``api_key`` LiteLLM takes the provider's key from the environment. ``base_url`` is for providers that
    have several addresses. Answers are never streamed, even if a request asks for that.
    """

    def __init__(self, base_url: str | None = None, api_key: str | None = None) -> None:
        self.base_url = base_url or "litellm"
        """The name of this backend in messages."""
        given: dict[str, JSON] = {"api_base": base_url, "api_key": api_key}
        self._given = {name: value for name, value in given.items() if value is not None}
        self._litellm = load_litellm()
        hide_keys_of_environment()

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Make one call, as `flowevolve.core.model.Transport.chat` says."""
        body = wire.request_body(replace(request, stream=False, priority=None))
        ours: dict[str, JSON] = {"timeout": timeout, "num_retries": 0, "max_retries": 0, "drop_params": True}
        async with failures.limited(timeout):
            try:
                answer = await self._litellm.acompletion(**{**self._given, **ours, **body})
            except APIError as error:
                raise _failure(error) from error
        return wire.chat_reply(answer.model_dump_json().encode(), request.model)

    async def models(self) -> tuple[str, ...]:
        """Raises: RefusedError, as there is no list of all models."""
        raise RefusedError("LiteLLM has no list of models", status=_NOT_KNOWN)

    async def aclose(self) -> None:
        """LiteLLM keeps its connections for the whole process."""


def _failure(error: APIError) -> LLMError:
    """The error for an exception of LiteLLM, which derives its own from those of OpenAI's SDK for every provider."""
    if any(isinstance(cause, OSError | aiohttp.ClientConnectionError) for cause in _causes(error)):
        return failures.unreachable(error)
    if _NO_PROVIDER in error.message:
        return RefusedError(error.message)
    if isinstance(error, APIStatusError):
        headers = error.litellm_response_headers if isinstance(error, _WithHeaders) else None
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        return failures.status_error(error.status_code, "", lower, error.message.encode())
    return failures.unreachable(error) if isinstance(error, APIConnectionError) else ServerError(error.message)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
