"""The transport over OpenAI's official SDK, for OpenAI and whatever speaks its chat completions API.

The SDK carries the bytes; its own retries are off, and its types are not used: they accept any shape of a body.

Needs ``openai[aiohttp]``, that is ``openai`` (with ``httpx2``) and ``aiohttp``.
"""

from __future__ import annotations

from collections.abc import Awaitable

from httpx2 import Limits, Response
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAioHttpClient

from flowevolve.llm import wire
from flowevolve.llm.types import ChatReply, ChatRequest


class OpenAITransport:
    """Calls the chat completions API at ``base_url`` (with its ``/v1``).

    Without an ``api_key`` none is looked up in the environment, so that a key meant for OpenAI is never sent to
    another server. Times are wall-clock seconds.
    """

    def __init__(
        self, base_url: str, api_key: str | None, *, max_connections: int, identity: str | None = None
    ) -> None:
        self.base_url = base_url
        self.identity = base_url if identity is None else identity
        """What replies depend on beside the request (`flowevolve.llm.client.Identified`)."""
        limits = Limits(
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=wire.KEEPALIVE_SECONDS,
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
        answer = self._client.post(wire.CHAT_PATH, cast_to=Response, body=wire.request_body(request))
        return wire.chat_reply(await _content(answer, timeout), request.model)

    async def models(self) -> tuple[str, ...]:
        """The model names the backend serves, as `flowevolve.llm.types.Transport.models` says."""
        answer = self._client.get(wire.MODELS_PATH, cast_to=Response)
        return wire.model_names(await _content(answer, wire.MODELS_SECONDS))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()


async def _content(answer: Awaitable[Response], seconds: float) -> bytes:
    """The body of an answer of the SDK."""
    try:
        with wire.failures(seconds):
            return (await answer).content
    except APIStatusError as error:
        failed = error.response
        raise wire.status_error(failed.status_code, failed.reason_phrase, failed.headers, failed.content) from error
    except APIConnectionError as error:
        raise wire.unreachable(error.__cause__ or error) from error
