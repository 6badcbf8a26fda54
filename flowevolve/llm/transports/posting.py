"""POST requests over the connections of an aiohttp session, without the steps that a session takes around each.

These steps take two thirds of the CPU time of a request. aiohttp still manages the connections and reads the answers.
The session builds the head of the requests, once for each URL, and it follows redirects.
"""

from __future__ import annotations

import re
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import NoReturn, Protocol

from aiohttp import (
    ClientHandlerType,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    InvalidURL,
    StreamReader,
)
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from multidict import CIMultiDictProxy
from yarl import URL

_AS_BEFORE, _REDIRECTS = (307, 308), (301, 302, 303, 307, 308)
"""The statuses of redirects. After those in `_AS_BEFORE` the same request is sent again, body included; after others
a GET request is sent, as browsers do.
"""
_NO_LIMIT = ClientTimeout(total=None)
_FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Answer(Protocol):
    """An answer whose head has arrived: the part of `aiohttp.ClientResponse` that is needed."""

    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def headers(self) -> CIMultiDictProxy[str]: ...
    @property
    def content_length(self) -> int | None: ...
    @property
    def content(self) -> StreamReader: ...
    async def read(self) -> bytes: ...


class _Answer:
    __slots__ = ("content", "headers", "reason", "status")

    def __init__(self, message: RawResponseMessage, content: StreamReader) -> None:
        self.status = message.code
        self.reason = message.reason
        self.headers = message.headers
        self.content = content

    @property
    def content_length(self) -> int | None:
        length = self.headers.get("Content-Length")
        return None if length is None else int(length)

    async def read(self) -> bytes:
        content = self.content
        return content.read_nowait() if content.is_eof() else await content.read()


class Posts:
    """POST requests to one URL.

    Raises:
        ValueError: if a header can't be sent.
    """

    def __init__(self, session: ClientSession, request: ClientRequest) -> None:
        assert session.connector is not None
        self.session, self.connector = session, session.connector
        self.request = request
        lines = [f"POST {request.url.raw_path_qs} HTTP/1.1"]
        lines += [f"{name}: {text}" for name, text in request.headers.items() if name.lower() != "content-length"]
        if any(map(_FORBIDDEN.search, lines)):
            raise ValueError("there is a line break, or another control character, in a header")
        self.head = "\r\n".join([*lines, "Content-Length: "]).encode()

    @classmethod
    async def to(cls, session: ClientSession, url: str) -> Posts:
        """Requests to this URL, with the head that the session would send."""
        try:
            await session.post(url, data=b"", middlewares=[_look])
        except _SeenError as seen:
            return cls(session, seen.request)
        raise AssertionError("a middleware was not called")

    def send(self, body: bytes) -> AbstractAsyncContextManager[Answer]:
        """Send a request. Its answer can be read until the block ends.

        Raises:
            aiohttp.ClientError, aiohttp.http.HttpProcessingError, OSError: if there is no answer, or it is not HTTP.
        """
        return _Exchange(self, body)


class _Exchange:
    """One request and its answer."""

    __slots__ = ("_body", "_connection", "_posts", "_redirected")

    def __init__(self, posts: Posts, body: bytes) -> None:
        self._posts = posts
        self._body = body
        self._connection: Connection | None = None
        self._redirected: AbstractAsyncContextManager[ClientResponse] | None = None

    async def __aenter__(self) -> Answer:
        posts = self._posts
        connection = self._connection = await posts.connector.connect(posts.request, traces=[], timeout=_NO_LIMIT)
        try:
            answer = await self._exchange(connection)
        except BaseException:
            _close(connection)
            raise
        if answer.status not in _REDIRECTS:
            return answer
        location = answer.headers.get("Location") or answer.headers.get("URI")
        if not location:
            return answer
        _close(connection)
        self._redirected = self._follow(location, with_body=answer.status in _AS_BEFORE)
        return await self._redirected.__aenter__()

    def _follow(self, location: str, *, with_body: bool) -> AbstractAsyncContextManager[ClientResponse]:
        try:
            url = self._posts.request.url.join(URL(location))
        except ValueError as error:
            raise InvalidURL(location) from error
        session = self._posts.session
        return session.post(url, data=self._body) if with_body else session.get(url)

    async def _exchange(self, connection: Connection) -> _Answer:
        protocol, transport = connection.protocol, connection.transport
        assert protocol is not None
        assert transport is not None
        protocol.set_response_params(read_until_eof=True, auto_decompress=False)
        transport.write(b"%b%d\r\n\r\n%b" % (self._posts.head, len(self._body), self._body))
        while True:
            message, content = await protocol.read()
            if not 100 <= message.code < 200 or message.code == 101:
                return _Answer(message, content)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._redirected is not None:
            await self._redirected.__aexit__(kind, error, traceback)
        elif self._connection is not None:
            if _has_unsent(self._connection):
                _close(self._connection)
            else:
                self._connection.release()  # this closes it if part of the answer was not read


def _has_unsent(connection: Connection) -> bool:
    """Whether part of the request has not been sent yet, so that it would be sent ahead of the next request."""
    transport = connection.transport
    return transport is not None and transport.get_write_buffer_size() > 0


def _close(connection: Connection) -> None:
    if connection.transport is not None and _has_unsent(connection):
        connection.transport.abort()  # else it would stay open until the server has taken the rest
    connection.close()


class _SeenError(Exception):
    def __init__(self, request: ClientRequest) -> None:
        super().__init__()
        self.request = request


async def _look(request: ClientRequest, send: ClientHandlerType) -> NoReturn:
    raise _SeenError(request)
