"""The faults of `flowevolve.sim.faults` as a client meets them over HTTP."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable

import anyio
from aiohttp import web

from flowevolve.core.model import ChatReply
from flowevolve.llm.transports.server_side import StreamEvents, answer_body
from flowevolve.sim.faults import Fault

REDIRECT_LOOP = "/v1/lost"
"""A path that redirects to itself."""

_PAGE = "<html><head><title>Welcome</title></head><body>Please sign in.</body></html>"


async def play_without_answer(fault: Fault, request: web.Request) -> web.StreamResponse | None:
    """Carry out a fault that needs no answer (a redirect, a hang, a reset). Returns None for other faults."""
    match fault:
        case "redirect":
            raise web.HTTPTemporaryRedirect(REDIRECT_LOOP)
        case "hang":
            await anyio.sleep_forever()
        case "reset":
            return reset(request)
    return None


async def redirect_to_itself(request: web.Request) -> web.Response:
    """Redirect `REDIRECT_LOOP` to itself."""
    raise web.HTTPTemporaryRedirect(REDIRECT_LOOP)


async def play_on_answer(
    fault: Fault, request: web.Request, reply: ChatReply, number: int, *, streamed: bool
) -> web.StreamResponse:
    """Spoil a good answer as the fault does. ``number`` counts the server's answers."""
    kind, content = _content(fault, reply, number, streamed=streamed)
    half = len(content) // 2
    match fault:
        case "cut":
            await _send(request, kind, [content[:half]])
            return reset(request)
        case "stall":
            await _send(request, kind, [content[:half]])
            await anyio.sleep_forever()
        case "trickle":
            await _send(request, kind, (content[at : at + 1] for at in range(len(content))), seconds=1.0)
        case "html":
            return web.Response(text=_PAGE, content_type="text/html")
    return web.Response(body=content, content_type=kind)


def reset(request: web.Request) -> web.StreamResponse:
    """Reset the connection. The response that is returned never reaches the client."""
    transport = request.transport
    if transport is not None:
        peer: socket.socket | None = transport.get_extra_info("socket")
        if peer is not None:
            # With a linger time of zero, closing resets the connection instead of ending it properly.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()


def _content(fault: Fault, reply: ChatReply, number: int, *, streamed: bool) -> tuple[str, bytes]:
    usage, choices = fault != "no_usage", fault != "empty"
    if streamed:
        events = StreamEvents(reply.model, number)
        end = events.end(reply, usage=usage) if choices else events.close(reply.usage)
        content = b"".join(events.pieces(reply.text)) + end if choices else end
        kind = "text/event-stream"
    else:
        content = answer_body(reply, number, usage=usage, choices=choices)
        kind = "application/json"
    return kind, content.replace(b'"choices"', b'"choices', 1) if fault == "malformed" else content


async def _send(request: web.Request, kind: str, parts: Iterable[bytes], *, seconds: float = 0.0) -> None:
    """Begin a response and send these parts of its body, ``seconds`` apart."""
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    for part in parts:
        await response.write(part)
        await anyio.sleep(seconds)
