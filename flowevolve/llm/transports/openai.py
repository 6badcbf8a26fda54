"""The transport over OpenAI's official SDK, for OpenAI and for any server with its chat completions API.

The SDK only carries the bytes: its retries are off, and its types are not used, as they accept a body of any shape.

Needs ``openai``, ``httpx2`` and ``aiohttp``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

from httpx2 import AsyncBaseTransport, AsyncByteStream, AsyncClient, HTTPError, Limits, Request, Response
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, AsyncStream, DefaultAioHttpClient, Omit

from flowevolve._util.addresses import is_loopback
from flowevolve._util.json_types import JSON
from flowevolve._util.secrets import hide_headers_of_environment, is_openais
from flowevolve.core.model import ChatReply, ChatRequest, EmbedReply, EmbedRequest, LLMError, ServerTransport
from flowevolve.llm.transports import failures, sse, wire
from flowevolve.llm.transports.address import CHAT, EMBEDDINGS, Address
from flowevolve.llm.transports.bounded import ACCEPTED, MAX_REPLY_BYTES, ReplyBound, bounded, start_of_body
from flowevolve.llm.transports.listing import list_models
from flowevolve.llm.transports.request_form import RequestForms

_CLIENT: type[AsyncClient] = DefaultAioHttpClient if issubclass(DefaultAioHttpClient, AsyncClient) else AsyncClient
"""The HTTP client for the SDK: the one over aiohttp, if the SDK has it for httpx2. Version 2 of the SDK has not, and
LiteLLM, which dspy needs, requires that version.
"""
_NO_PROXIES: dict[str, AsyncBaseTransport | None] = {"http://": None, "https://": None, "all://": None}


class OpenAITransport(ServerTransport):
    """Calls the chat completions API at ``base_url`` (including ``/v1``).

    With ``azure_api_version``, ``base_url`` is the endpoint of an Azure resource.

    Without an ``api_key`` none is sent, nor looked up in the environment: `flowevolve._util.secrets.key_for` decides
    which server gets which key. ``headers`` go with every request. Times are in seconds of wall-clock time.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        *,
        max_connections: int,
        identity: str | None = None,
        azure_api_version: str | None = None,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(base_url, identity)
        hide_headers_of_environment()
        self._address = Address(base_url, azure_api_version, api_key)
        # The SDK's own header with the key is left out, as only the address knows where the key belongs. If the server
        # is not OpenAI's, so are the headers with the account at OpenAI that the environment names.
        account = () if is_openais(base_url) else ("OpenAI-Organization", "OpenAI-Project")
        self._headers: dict[str, str | Omit] = {
            "Authorization": Omit(),
            **dict.fromkeys(account, Omit()),
            "Accept-Encoding": ACCEPTED,
            **(headers or {}),
            **self._address.headers,
        }
        limits = Limits(
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=wire.KEEPALIVE_SECONDS,
        )
        self._forms = RequestForms(base_url)
        self._bound = ReplyBound(max_reply_bytes)
        self._client = AsyncOpenAI(
            base_url=self._address.root,
            api_key="none",
            default_query=self._address.query,
            max_retries=0,
            timeout=None,  # the SDK's timeout starts anew with every byte read; ours is for the whole call
            http_client=_CLIENT(
                limits=limits,
                timeout=None,
                mounts=_NO_PROXIES if is_loopback(urlsplit(base_url).hostname or "") else None,
                event_hooks={"request": [self._check], "response": [partial(_bounded, self._bound)]},
                follow_redirects=True,
            ),
        )

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Make one call, as `flowevolve.core.model.Transport.chat` says."""

        async def send(body: Mapping[str, JSON], seconds: float) -> ChatReply:
            async with _failures(seconds):
                if request.stream:
                    return await self._streamed(request, body)
                path = self._address.path(CHAT, request.model)
                answer = await self._client.post(path, cast_to=Response, options={"headers": self._headers}, body=body)
            return wire.chat_reply(answer.content, request.model, answer.headers, bound=self._bound)

        return await self._forms.send(request.model, wire.request_body(request), timeout, send)

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        """Make one call, as `flowevolve.core.model.EmbeddingTransport.embed` says."""
        async with _failures(timeout):
            path = self._address.path(EMBEDDINGS, request.model)
            answer = await self._client.post(
                path, cast_to=Response, options={"headers": self._headers}, body=wire.embed_body(request)
            )
        return wire.embed_reply(answer.content, request, answer.headers, bound=self._bound)

    async def models(self) -> tuple[str, ...]:
        """The model names the backend serves, as `flowevolve.core.model.Transport.models` says."""

        async def get(path: str) -> bytes:
            async with _failures(wire.MODELS_SECONDS):
                answer = await self._client.get(path, cast_to=Response, options={"headers": self._headers})
            return answer.content

        return await list_models(self._address, get, bound=self._bound)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _streamed(self, request: ChatRequest, body: Mapping[str, JSON]) -> ChatReply:
        # The SDK's own reading of streams drops everything that is no event, and makes an object of every chunk.
        stream = await self._client.post(
            self._address.path(CHAT, request.model),
            cast_to=object,
            options={"headers": self._headers},
            body=body,
            stream=True,
            stream_cls=AsyncStream[object],
        )
        async with stream:
            answer = stream.response
            return await sse.read_reply(answer.aiter_bytes(), request, answer.headers, bound=self._bound)

    async def _check(self, request: Request) -> None:
        there, here = request.url, self._client.base_url
        if there.host and (there.scheme, there.host, there.port) != (here.scheme, here.host, here.port):
            raise self._address.sent_on(f"{there.scheme}://{there.netloc.decode('ascii')}")


async def _bounded(bound: ReplyBound, response: Response) -> None:
    """Replace the body of a response, which nobody has read yet, by one that we decompress and bound."""
    encoding = response.headers.pop("Content-Encoding", "")
    assert isinstance(response.stream, AsyncByteStream)
    body = response.stream
    pieces = start_of_body(body, encoding) if response.is_error else bounded(body, encoding, bound)
    response.stream = _Body(body, pieces)


class _Body(AsyncByteStream):
    """The pieces of a body, and the stream that they come from."""

    def __init__(self, stream: AsyncByteStream, pieces: AsyncIterator[bytes]) -> None:
        self._stream = stream
        self._pieces = pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def _failures(seconds: float) -> AsyncGenerator[None]:
    """As `flowevolve.llm.transports.failures.limited`, for calls over the SDK."""
    try:
        async with failures.limited(seconds):
            yield
    except APIStatusError as error:
        failed = error.response
        raise failures.status_error(failed.status_code, failed.reason_phrase, failed.headers, failed.content) from error
    except (APIConnectionError, HTTPError) as error:
        if isinstance(error.__cause__, LLMError):  # ours, raised while the SDK read
            raise error.__cause__ from None
        raise failures.unreachable(error.__cause__ or error) from error
