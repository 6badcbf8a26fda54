"""The fast transport: the chat completions API directly over aiohttp, for many calls in flight on little CPU."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cached_property

from aiohttp import (
    ClientHandlerType,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from yarl import URL

from flowevolve._util.json_text import strict_json
from flowevolve._util.json_types import JSON
from flowevolve.core.model import ChatReply, ChatRequest, EmbedReply, EmbedRequest, ServerTransport
from flowevolve.llm.transports import failures, sse, wire
from flowevolve.llm.transports.address import CHAT, EMBEDDINGS, Address
from flowevolve.llm.transports.bounded import ACCEPTED, MAX_REPLY_BYTES, ReplyBound, bounded, start_of_body
from flowevolve.llm.transports.listing import list_models
from flowevolve.llm.transports.posting import Answer, Posts
from flowevolve.llm.transports.proxies import proxy_for
from flowevolve.llm.transports.request_form import RequestForms


class AioHTTPTransport(ServerTransport):
    """Calls the chat completions API at ``base_url`` (including ``/v1``), over at most ``max_connections`` connections.

    With ``azure_api_version``, ``base_url`` is the endpoint of an Azure resource.

    Without an ``api_key`` none is sent. ``headers`` go with every request. Proxies are taken from the environment
    (``HTTPS_PROXY`` and the like), except for addresses of this machine. The connections belong to the event loop of
    the first call; after ``aclose`` another loop can use the transport.
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
        self._address = Address(base_url, azure_api_version, api_key)
        self._headers = {
            "Content-Type": "application/json",
            "Accept-Encoding": ACCEPTED,
            **(headers or {}),
            **self._address.headers,
        }
        self._bound = ReplyBound(max_reply_bytes)
        self._forms = RequestForms(base_url)
        self._max_connections = max_connections
        # Looked up once, as aiohttp itself would ask the environment and read ``~/.netrc`` for every request.
        self._proxy = proxy_for(base_url)
        self._session: ClientSession | None = None
        self._posts: dict[str, Posts] = {}
        """By URL."""

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Make one call, as `flowevolve.core.model.Transport.chat` says."""

        async def send(body: Mapping[str, JSON], seconds: float) -> ChatReply:
            async with failures.limited(seconds), await self._post(CHAT, request.model, body) as response:
                if request.stream and response.status == 200:
                    pieces = self._pieces(response)
                    return await sse.read_reply(pieces, request, response.headers, bound=self._bound)
                content = await self._content(response)
            return wire.chat_reply(content, request.model, response.headers, bound=self._bound)

        return await self._forms.send(request.model, wire.request_body(request), timeout, send)

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        """Make one call, as `flowevolve.core.model.EmbeddingTransport.embed` says."""
        body = wire.embed_body(request)
        async with failures.limited(timeout), await self._post(EMBEDDINGS, request.model, body) as response:
            content = await self._content(response)
        return wire.embed_reply(content, request, response.headers, bound=self._bound)

    async def models(self) -> tuple[str, ...]:
        """The model names the backend serves, as `flowevolve.core.model.Transport.models` says."""

        async def get(path: str) -> bytes:
            session, url = self._open_session(), self._address.url(path)
            async with failures.limited(wire.MODELS_SECONDS), session.get(url) as response:
                return await self._content(response)

        return await list_models(self._address, get, bound=self._bound)

    async def aclose(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        self._posts.clear()
        if session is not None:
            await session.close()

    async def _post(self, path: str, model: str, body: Mapping[str, JSON]) -> AbstractAsyncContextManager[Answer]:
        content, session = strict_json(body), self._open_session()
        url = self._address.url(self._address.path(path, model))
        if self._proxy is not None:
            return session.post(url, data=content)
        posts = self._posts.get(url)
        if posts is None:
            posts = self._posts[url] = await Posts.to(session, url)
        return posts.send(content)

    def _pieces(self, response: Answer) -> AsyncIterator[bytes]:
        return bounded(response.content.iter_any(), response.headers.get("Content-Encoding", ""), self._bound)

    async def _content(self, response: Answer) -> bytes:
        encoding = response.headers.get("Content-Encoding", "")
        if 200 <= response.status < 300:
            length = response.content_length
            if not encoding and length is not None and length <= self._bound.most_bytes:
                return await response.read()  # aiohttp reads no more than the length
            return b"".join([piece async for piece in self._pieces(response)])
        start = b"".join([piece async for piece in start_of_body(response.content.iter_any(), encoding)])
        raise failures.status_error(response.status, response.reason or "", response.headers, start)

    def _open_session(self) -> ClientSession:
        if self._session is not None:
            return self._session
        self._session = ClientSession(
            connector=TCPConnector(limit=self._max_connections, keepalive_timeout=wire.KEEPALIVE_SECONDS),
            headers=self._headers,
            proxy=self._proxy,
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            middlewares=[self._send],
            timeout=ClientTimeout(total=None),  # ours is for the whole call, and kept in one place
        )
        return self._session

    @cached_property
    def _origin(self) -> URL:
        return URL(self._address.root).origin()

    async def _send(self, request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        # Checked here, as any answer may redirect the request, and not only with the header Location.
        origin = request.url.origin()
        if origin != self._origin:
            raise self._address.sent_on(str(origin))
        return await send(request)
