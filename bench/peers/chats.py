"""Blocking chat completions for programs that use threads, over connections that stay open, at little CPU time.

The standard library's client costs a fraction of what the SDKs do, so no peer is slower with it than with its own.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse
from itertools import count
from typing import Self
from urllib.parse import urlsplit

from flowevolve.core.model import Message

TIMEOUT_SECONDS = 600.0
ATTEMPTS = 6
KEEP_SECONDS = 4.0
"""Seconds that an idle connection is kept: uvicorn closes it after 5 s, and a request sent at that moment is lost."""
BACKOFF_SECONDS = 0.5
"""Seconds before the second attempt if the server does not say; doubled for each further attempt."""
_BUSY = (429, 503)


class ChatError(RuntimeError):
    """The server refused a call, with this status, or could not be reached after `ATTEMPTS` attempts."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Chats:
    """Calls one model at a base URL (``http://host:port/v1``), from any thread, at most ``concurrency`` at a time.

    Every call has a sampling seed of its own, as our engine's calls do. As a context manager it closes its connections.
    """

    def __init__(
        self, base_url: str, model: str, *, concurrency: int, seed: int = 0, max_tokens: int | None = None
    ) -> None:
        address = urlsplit(base_url)
        self._host, self._path = address.netloc, address.path.rstrip("/") + "/chat/completions"
        self._model = model
        self._seeds = count(seed * 1_000_000)
        self._max_tokens = max_tokens
        self._slots = threading.BoundedSemaphore(concurrency)
        self._local = threading.local()
        self._connections: list[HTTPConnection] = []
        self.concurrency = concurrency

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for connection in self._connections:
            connection.close()

    def __call__(self, messages: Sequence[Message], max_tokens: int | None = None) -> str:
        """The reply's text.

        Raises:
            ChatError: if there is none.
        """
        body: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "seed": next(self._seeds),
        }
        most = self._max_tokens if max_tokens is None else max_tokens
        if most is not None:
            body["max_tokens"] = most
        content = json.dumps(body).encode()
        for attempt in range(ATTEMPTS):
            with self._slots:
                answer, wait = self._attempt(content)
            if answer is not None:
                return str(json.loads(answer)["choices"][0]["message"]["content"] or "")
            time.sleep(BACKOFF_SECONDS * 2**attempt if wait is None else wait)
        raise ChatError(f"{self._host}: no answer after {ATTEMPTS} attempts")

    def _attempt(self, content: bytes) -> tuple[bytes | None, float | None]:
        """The answer's body, or None and the seconds the server asks to wait if it says so."""
        try:
            response = self._send(content)
            body = response.read()
        except (OSError, HTTPException):
            self._connection().close()
            return None, None
        finally:
            self._local.used = time.monotonic()
        if response.status == 200:
            return body, None
        if response.status in _BUSY:
            asked = response.getheader("Retry-After")
            return None, None if asked is None else float(asked)
        said = body[:200].decode(errors="replace")
        raise ChatError(f"{self._host}: status {response.status}: {said}", response.status)

    def _send(self, content: bytes) -> HTTPResponse:
        connection = self._connection()
        connection.request("POST", self._path, content, {"Content-Type": "application/json"})
        return connection.getresponse()

    def _connection(self) -> HTTPConnection:
        """This thread's own connection, which opens itself when it is closed."""
        connection: HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = HTTPConnection(self._host, timeout=TIMEOUT_SECONDS)
            self._connections.append(connection)
        elif time.monotonic() - self._local.used > KEEP_SECONDS:
            connection.close()
        return connection
