"""The gateway over HTTP: an OpenAI-compatible API in front of the server, with metrics of each run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

from aiohttp import web
from aiohttp.typedefs import Handler

from flowevolve._util.addresses import is_loopback
from flowevolve._util.errors import InputError
from flowevolve._util.web_server import is_asked_locally
from flowevolve.core.model import (
    ChatReply,
    ChatRequest,
    EmbedReply,
    EmbedRequest,
    OverloadedError,
    RejectedError,
    ServerError,
)
from flowevolve.gateway.gateway import BUSY, RETRY_SECONDS, Gateway
from flowevolve.llm.transports.api_server import MOST_BYTES, serve_api
from flowevolve.llm.transports.sender import Sender
from flowevolve.llm.transports.server_side import StreamEvents, answer_body, error_answer

MOST_WAITING_BYTES = 2**30
"""The most bytes of requests that may wait or be in progress, from all runs together; more are turned away."""
_ONLY_TEXT = ("tools", "functions", "modalities", "audio")
"""Fields of requests that ask for more than text in the answer."""


@asynccontextmanager
async def serve(
    gateway: Gateway,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    timeout_seconds: float = 600.0,
    most_bytes: int = MOST_WAITING_BYTES,
) -> AsyncGenerator[str]:
    """Serve on this address, and yield the API's base URL. Port 0 takes any free port.

    If a client disconnects, its request leaves the queue or is cancelled at the server. ``timeout_seconds`` is how long
    the server may work on a request; ``most_bytes`` bounds the bodies of all requests that wait or are in progress.

    Raises:
        OSError: if the address can't be listened on.
    """
    doors = _Doors(host, most_bytes)
    api = _SharedAPI(gateway, timeout_seconds)
    async with serve_api(api, host, port, middlewares=[doors.turn_browsers_away, doors.keep_room]) as url:
        yield url


class _Doors:
    """Decides which requests are admitted, as middlewares of aiohttp."""

    def __init__(self, host: str, most_bytes: int) -> None:
        self._host = host
        self._most_bytes = most_bytes
        self._bytes = 0
        """The size of the bodies of all requests that wait or are in progress."""

    @web.middleware
    async def turn_browsers_away(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turn away requests of a page in a browser, as the page may be anybody's.

        No client of the API sends the header ``Origin``. A browser may leave it out if it takes the page for one of
        ours, because its host name leads here. If this server listens on a loopback address, such requests are
        recognized by that name.
        """
        if "Origin" in request.headers:
            return web.Response(status=403, text="the gateway does not answer requests of pages in browsers")
        if is_loopback(self._host) and not is_asked_locally(request, self._host):
            said = f"this gateway serves only this machine; use its address http://{self._host}, with its port"
            return web.Response(status=403, text=said)
        return await handler(request)

    @web.middleware
    async def keep_room(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turn away a request that there is no room for, before it is read. A body of unknown length counts as one of
        the largest that are accepted.
        """
        length = request.content_length
        size = MOST_BYTES if length is None and request.can_read_body else length or 0
        if self._bytes + size > self._most_bytes:
            said = f"requests of {self._most_bytes / 2**20:g} MB wait here already"
            return error_answer(OverloadedError(said, status=BUSY, retry_after=RETRY_SECONDS))
        self._bytes += size
        try:
            return await handler(request)
        finally:
            self._bytes -= size


class _SharedAPI:
    owner = "flowevolve-gateway"

    def __init__(self, gateway: Gateway, timeout_seconds: float) -> None:
        self._gateway = gateway
        self._timeout_seconds = timeout_seconds
        self._answered = 0

    async def chat(self, request: web.Request, asked: ChatRequest, *, usage: bool) -> web.StreamResponse:
        _check_one_text(asked)
        sender = _sender(request)
        try:
            reply = await self._gateway.chat(sender, asked, timeout=self._timeout_seconds)
        except InputError as error:  # of the response cache
            raise ServerError(str(error)) from error
        self._answered += 1
        if asked.stream:
            return await self._streamed(request, asked, reply, usage=usage and not reply.estimated)
        content = answer_body(reply, self._answered, usage=not reply.estimated)
        return web.Response(body=content, content_type="application/json")

    async def _streamed(
        self, request: web.Request, asked: ChatRequest, reply: ChatReply, *, usage: bool
    ) -> web.StreamResponse:
        """Send a complete answer in the form of a stream."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        events = StreamEvents(reply.model or asked.model, self._answered)
        with suppress(ConnectionError):  # the client has gone away
            await response.prepare(request)
            if reply.thinking:
                await response.write(events.thinking(reply.thinking))
            for piece in events.pieces(reply.text):
                await response.write(piece)
            await response.write(events.end(reply, usage=usage))
        return response

    async def embed(self, request: web.Request, asked: EmbedRequest) -> EmbedReply:
        return await self._gateway.embed(_sender(request), asked, timeout=self._timeout_seconds)

    async def models(self) -> Sequence[str]:
        return await self._gateway.models()

    async def metrics(self) -> str:
        return metrics_text(self._gateway)


def metrics_text(gateway: Gateway) -> str:
    """The metrics of a gateway, in Prometheus' form.

    The metrics of requests in flight and waiting have vLLM's names, so that a run's admission policy ``server_queue``
    keeps the queue here short, as it would a server's.
    """
    stats, accounts = gateway.stats(), gateway.accounts()
    lines = [
        "# TYPE vllm:num_requests_running gauge",
        f"vllm:num_requests_running {stats.in_flight}",
        "# TYPE vllm:num_requests_waiting gauge",
        f"vllm:num_requests_waiting {stats.waiting}",
    ]
    by_run: dict[tuple[str, str], list[float]] = {
        ("share", "gauge"): [account.sender.share for account in accounts],
        ("priority", "gauge"): [account.sender.priority for account in accounts],
        ("requests_in_flight", "gauge"): [account.in_flight for account in accounts],
        ("requests_waiting", "gauge"): [account.waiting for account in accounts],
        ("requests_answered_total", "counter"): [account.requests for account in accounts],
        ("prompt_tokens_total", "counter"): [account.usage.prompt_tokens for account in accounts],
        ("completion_tokens_total", "counter"): [account.usage.completion_tokens for account in accounts],
    }
    for (name, kind), values in by_run.items():
        lines.append(f"# TYPE flowevolve_gateway_{name} {kind}")
        lines += [
            f'flowevolve_gateway_{name}{{run="{account.sender.run}"}} {value}'
            for account, value in zip(accounts, values, strict=True)
        ]
    return "\n".join(lines) + "\n"


def _sender(request: web.Request) -> Sender:
    """Raises: RejectedError if one of the sender's headers has an invalid value."""
    try:
        return Sender.of(request.headers)
    except ValueError as error:
        raise RejectedError(f"invalid request: {error}") from error


def _check_one_text(asked: ChatRequest) -> None:
    """Raises: RejectedError if a request asks for anything but a single answer of text."""
    beyond = next((name for name in _ONLY_TEXT if asked.extra.get(name)), None)
    if beyond is not None or asked.extra.get("n") not in (None, 1):
        raise RejectedError(
            f"invalid request: the gateway passes on one answer of text, and {beyond or 'n'!r} asks for more: ask the "
            "server itself"
        )
