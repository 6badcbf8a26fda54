"""Answers of a server that wants to fill our memory or to hold us up, as the bytes that it sends; most have no end."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain, count, repeat

import anyio
import anyio.abc

from flowevolve.core.model import LLMError, RejectedError, ServerError

MOST = 2**20
"""The bound, in bytes, for which these answers are meant."""
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n"
_TOO_LONG = rf"longer than {MOST} bytes: raise llm.max_reply_bytes if that is right \(\d+ bytes had come"
_TOO_MANY = "has more than 262144 (values|lines): raise llm.max_reply_bytes"


@dataclass(frozen=True)
class HostileReply:
    """An answer, and the error that it must end in: whole, as a stream, for embeddings and as a list of models."""

    name: str
    pieces: Callable[[], Iterable[bytes]]
    error: type[LLMError]
    says: str
    streamed: tuple[type[LLMError], str] | None = None
    """The error where the answer is read as a stream, if that is another."""


def bomb(unit: bytes) -> Iterator[bytes]:
    """A gzip body that opens to a unit again and again. A block that was flushed whole can be repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
    yield from repeat(packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH))


def _chunks(pieces: Iterable[bytes], encoding: bytes = b"identity") -> Iterator[bytes]:
    yield _CHUNKED + b"Content-Encoding: " + encoding + b"\r\n\r\n"
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)


def _whole(body: bytes) -> list[bytes]:
    return [_OK + b"Content-Length: %d\r\n\r\n" % len(body), body]


def _padded(filling: bytes, before: bytes, after: bytes, size: int = MOST - 1000) -> list[bytes]:
    return _whole(before + filling * (size // len(filling)) + after)


def _headers() -> Iterator[bytes]:
    return (b"X-%d: again\r\n" % number for number in count())


def _event(**choice: object) -> bytes:
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


_ANSWER = b'{"choices":[{"message":{"content":"x"}}],"data":[{"embedding":[1],"id":"m"}],"more":['
_TEXT = b'{"choices":[{"message":{"content":"', b'"}}],"data":[]}'
_LISTS: list[list[object]] = [[]] * 2**16

REPLIES = [
    HostileReply("an endless body", lambda: _chunks(repeat(b" " * 2**14)), RejectedError, _TOO_LONG),
    HostileReply(
        "an endless line", lambda: _chunks(chain([b"data: "], repeat(b"a" * 2**14))), RejectedError, _TOO_LONG
    ),
    HostileReply("packed spaces", lambda: _chunks(bomb(b" " * MOST), b"gzip"), RejectedError, _TOO_LONG),
    HostileReply(
        "packed lines",
        lambda: _chunks(bomb(b"\n" * MOST), b"gzip"),
        RejectedError,
        _TOO_LONG,
        (RejectedError, _TOO_MANY),
    ),
    HostileReply("packed events", lambda: _chunks(bomb(b"data: {}\n\n" * 10**5), b"gzip"), RejectedError, _TOO_LONG),
    HostileReply(
        "packed nothing, again and again",
        lambda: _chunks(repeat(gzip.compress(b"") * 500), b"gzip"),
        ServerError,
        "in more than 4096 pieces",
    ),
    HostileReply(
        "a packed file with an endless name",
        lambda: _chunks(chain([b"\x1f\x8b\x08\x08\0\0\0\0\0\x03"], repeat(b"a" * 2**14)), b"gzip"),
        RejectedError,
        _TOO_LONG,
    ),
    HostileReply(
        "log-probabilities in every event",
        lambda: _chunks(repeat(_event(delta={"content": "a"}, logprobs={"content": _LISTS}))),
        RejectedError,
        _TOO_LONG,
        (RejectedError, "(has more than 262144 values|longer than)"),
    ),
    HostileReply("empty lists", lambda: _padded(b"[],", _ANSWER, b"0]}"), RejectedError, _TOO_MANY),
    HostileReply("small objects", lambda: _padded(b'{"":0},', _ANSWER, b"0]}"), RejectedError, _TOO_MANY),
    HostileReply("small numbers", lambda: _padded(b"0,", _ANSWER, b"0]}"), RejectedError, _TOO_MANY),
    HostileReply("lists within lists", lambda: _whole(_ANSWER + b"[" * 10**5), ServerError, "nested too deeply"),
    HostileReply("a number of many digits", lambda: _padded(b"7", _ANSWER, b"]}"), ServerError, "is not JSON"),
    HostileReply("endless headers", lambda: chain([_OK], _headers()), ServerError, "is not HTTP"),
    HostileReply("an endless header", lambda: chain([_OK + b"X: "], repeat(b"a" * 2**14)), ServerError, "is not HTTP"),
    HostileReply("an endless status", lambda: chain([b"HTTP/1.1 200 "], repeat(b"a" * 2**14)), ServerError, "not HTTP"),
    HostileReply(
        "endless trailers",
        lambda: chain([_CHUNKED + b"\r\n2\r\n{}\r\n0\r\n"], _headers()),
        LLMError,  # which depends on how much came at once
        "Too many headers",
    ),
]
LONG_TEXTS = [
    HostileReply("a long text", lambda: _padded(b"a", *_TEXT), RejectedError, "a text of more than 262144 characters"),
    HostileReply(
        "a long text of tags",
        lambda: _padded(b"<think>", *_TEXT),
        RejectedError,
        "a text of more than 262144 characters",
    ),
    HostileReply(
        "deep log-probabilities",
        lambda: _whole(b'{"choices":[{"message":{"content":"x"},"logprobs":' + b"[" * 99 + b"]" * 99 + b"}]}"),
        RejectedError,
        "more than 64 lists and objects inside each other",
    ),
]
"""Answers that are too much as a chat alone."""


@asynccontextmanager
async def answering(pieces: Callable[[], Iterable[bytes]]) -> AsyncIterator[str]:
    """The address of a server on loopback that answers every request with these bytes, until the client hangs up."""

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            try:
                while True:
                    await _read_request(stream)
                    for piece in pieces():
                        await stream.send(piece)
            except (anyio.BrokenResourceError, anyio.EndOfStream):
                pass

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{port}/v1"
        tasks.cancel_scope.cancel()


async def _read_request(stream: anyio.abc.SocketStream) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += await stream.receive()
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    left = sum(map(int, lengths)) - len(body)
    while left > 0:
        left -= len(await stream.receive())
