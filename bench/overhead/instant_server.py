"""A server in a process of its own that answers at once, as cheaply as Python can, so that only the caller's cost
counts.

It implements only as much of HTTP/1.1 and of the chat completions API as our clients and the SDK use.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from multiprocessing.connection import Connection

from flowevolve.prompts.reflection import REFLECT_TITLE

MODEL = "m"
_REFLECTION = REFLECT_TITLE.encode()
_LENGTH = b"content-length:"


@contextmanager
def instant_server(gather: int = 1) -> Iterator[str]:
    """Run such a server until the block ends; yields its base URL. It answers once ``gather`` requests are waiting."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_main, args=(theirs, gather), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.terminate()
        process.join()


def _main(pipe: Connection, gather: int) -> None:
    asyncio.run(_serve(pipe, gather))


async def _serve(pipe: Connection, gather: int) -> None:
    waiting: list[tuple[_Peer, bytes]] = []
    numbers = count()

    def asked(peer: _Peer, body: bytes) -> None:
        waiting.append((peer, body))
        if len(waiting) >= gather:
            for each, content in waiting:
                each.answer(_reply(content, next(numbers)))
            waiting.clear()

    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Peer(asked), "127.0.0.1", 0, backlog=4096)
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


class _Peer(asyncio.Protocol):
    """One connection, whose requests come one after another."""

    def __init__(self, asked: Callable[[_Peer, bytes], None]) -> None:
        self._asked = asked
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, rest = self._received.partition(b"\r\n\r\n")
        if not blank:
            return
        if head.startswith(b"GET"):
            self._received = rest
            self.answer(json.dumps({"object": "list", "data": [{"id": MODEL}]}).encode())
            return
        at = head.lower().index(_LENGTH) + len(_LENGTH)
        length = int(head[at:].split(b"\r\n", 1)[0])
        if len(rest) >= length:
            self._received = rest[length:]
            self._asked(self, rest[:length])

    def answer(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


def _reply(body: bytes, number: int) -> bytes:
    """The answer to a request: two words to a rollout, and to a reflection an instruction that differs every time."""
    text = f"```\nAnswer well, way {number}.\n```" if _REFLECTION in body else "all right"
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    answer = {"id": "x", "object": "chat.completion", "created": 0, "model": MODEL, "choices": [choice], "usage": usage}
    return json.dumps(answer).encode()
