"""The fast transport: the chat completions API straight over aiohttp, for many calls in flight on little CPU."""

from __future__ import annotations

from io import BytesIO
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from flowevolve.llm import wire
from flowevolve.llm.types import ChatReply, ChatRequest

# Bodies above this size, in bytes, are sent in pieces, so that the event loop gets its turns in between.
_LARGE = 2**20


class AioHTTPTransport:
    """Calls the chat completions API at ``base_url`` (with its ``/v1``), over at most ``max_connections``.

    Without an ``api_key`` none is sent. Proxies are those of the environment (``HTTPS_PROXY`` and the like). The
    connections belong to the event loop of the first call; after ``aclose`` another loop can use the transport.
    """

    def __init__(
        self, base_url: str, api_key: str | None, *, max_connections: int, identity: str | None = None
    ) -> None:
        self.base_url = base_url
        self.identity = base_url if identity is None else identity
        """What replies depend on beside the request (`flowevolve.llm.client.Identified`)."""
        self._chat_url = base_url.rstrip("/") + wire.CHAT_PATH
        self._models_url = base_url.rstrip("/") + wire.MODELS_PATH
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._max_connections = max_connections
        self._proxy = _proxy(base_url)
        self._session: ClientSession | None = None

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        """Make one call, as `flowevolve.llm.types.Transport.chat` says."""
        with wire.failures(timeout):
            content = await self._fetch("POST", self._chat_url, wire.encode(request))
        return wire.chat_reply(content, request.model)

    async def models(self) -> tuple[str, ...]:
        """The model names the backend serves, as `flowevolve.llm.types.Transport.models` says."""
        with wire.failures(wire.MODELS_SECONDS):
            content = await self._fetch("GET", self._models_url, None)
        return wire.model_names(content)

    async def aclose(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _fetch(self, method: str, url: str, body: bytes | None) -> bytes:
        session = self._session or self._open()
        data = BytesIO(body) if body is not None and len(body) > _LARGE else body
        async with session.request(method, url, data=data) as response:
            content = await response.read()
        if 200 <= response.status < 300:
            return content
        raise wire.status_error(response.status, response.reason or "", response.headers, content)

    def _open(self) -> ClientSession:
        self._session = ClientSession(
            connector=TCPConnector(limit=self._max_connections, keepalive_timeout=wire.KEEPALIVE_SECONDS),
            headers=self._headers,
            proxy=self._proxy,
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=None),  # ours is for the whole call, and kept in one place
        )
        return self._session


def _proxy(url: str) -> str | None:
    """Looked up once: aiohttp's own way asks the environment and reads ``~/.netrc`` at every request."""
    address, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    return None if proxy is None or proxy_bypass(address.netloc.rpartition("@")[2]) else proxy
