"""Bounds on what a server may send: no answer can fill the memory or block the event loop, however it is compressed.

Bodies are decompressed here, step by step, and not by the HTTP libraries, so that reading ends at the bound.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass
from functools import cached_property

import anyio.lowlevel

from flowevolve._util.json_types import JSON
from flowevolve.core.model import ChatReply, RejectedError, ServerError, Usage

MAX_REPLY_BYTES = 32 * 2**20
ACCEPTED = "gzip, deflate"
"""The encodings that `unpacked` supports, as the value of ``Accept-Encoding``."""
START_BYTES = 2**16
"""How much of an answer with a failure status is read."""

_STEP = 2**16
"""The most bytes that are decompressed before other tasks get a turn."""
_BYTES_A_PART = 16
_LEAST_PARTS = 2**18
_MOST_DEPTH = 64
_MOST_MEMBERS = 4096
_ANY_HEADER, _NO_HEADER = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS


@dataclass(frozen=True)
class ReplyBound:
    """How much of an answer is accepted: ``most_bytes`` of its body, both compressed and decompressed."""

    most_bytes: int = MAX_REPLY_BYTES

    @cached_property
    def most_parts(self) -> int:
        """The most values in the JSON of an answer, lines in its stream, and characters in its text.

        Each of these takes many times the memory and the time of its bytes alone.
        """
        return max(_LEAST_PARTS, self.most_bytes // _BYTES_A_PART)

    def check_values(self, content: bytes) -> None:
        """Raises: RejectedError if JSON may have too many values, judged by its commas and opening brackets."""
        most = self.most_parts
        if len(content) > most and values_in(content) > most:
            raise self.error(f"has more than {most} values")

    def check_reply(self, reply: ChatReply) -> None:
        """Raises: RejectedError if its texts are too long, or its log-probabilities too deeply nested to be stored."""
        if len(reply.text) + len(reply.thinking) > self.most_parts:
            raise self.error(f"has a text of more than {self.most_parts} characters", reply.usage)
        if reply.logprobs is not None and _is_deeper(reply.logprobs):
            what = f"more than {_MOST_DEPTH} lists and objects inside each other"
            raise RejectedError(f"the answer has {what} in its logprobs", usage=reply.usage)

    def error(self, what: str, usage: Usage | None = None) -> RejectedError:
        """The error for an answer beyond the bound. It is final: a repeated request would cost and return the same."""
        message = f"the answer {what}: raise llm.max_reply_bytes if that is right"
        return RejectedError(message) if usage is None else RejectedError(message, usage=usage)


DEFAULT_BOUND = ReplyBound()


def values_in(content: bytes) -> int:
    """The most values that JSON can have inside its outermost one."""
    return content.count(b",") + content.count(b"[") + content.count(b"{")


def _is_deeper(value: JSON) -> bool:
    """Whether lists and objects in JSON are nested more deeply than `_MOST_DEPTH`."""
    level = [value]
    for _ in range(_MOST_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
    return any(isinstance(value, list | dict) for value in level)


def _inside(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


async def bounded(pieces: AsyncIterable[bytes], encoding: str, bound: ReplyBound) -> AsyncIterator[bytes]:
    """The decompressed pieces of a body, up to the bound. ``encoding`` is its ``Content-Encoding``.

    Raises:
        RejectedError: if the body exceeds the bound, compressed or decompressed.
        ServerError: if it can't be decompressed.
    """
    received = taken = 0

    def check(size: int) -> None:
        if size > bound.most_bytes:
            packed = "" if _is_plain(encoding) else f", and {taken} bytes were unpacked from them"
            raise RejectedError(
                f"the answer is longer than {bound.most_bytes} bytes: raise llm.max_reply_bytes if that is right "
                f"({received} bytes had come{packed}; the rest was not read)"
            )

    async def arriving() -> AsyncIterator[bytes]:
        nonlocal received
        async for piece in pieces:
            received += len(piece)
            check(received)
            yield piece

    async for piece in unpacked(arriving(), encoding):
        taken += len(piece)
        check(taken)
        yield piece


async def start_of_body(pieces: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The decompressed pieces of the beginning of a body, up to about `START_BYTES`."""
    seen = 0
    async for piece in bounded(pieces, encoding, DEFAULT_BOUND):
        yield piece[:START_BYTES]
        seen += len(piece)
        if seen >= START_BYTES:
            return


async def unpacked(pieces: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The decompressed pieces of a body; some may be empty.

    Raises:
        ServerError: if it can't be decompressed.
    """
    if _is_plain(encoding):
        async for piece in pieces:
            yield piece
        return
    packed = _Packed(encoding.strip().lower())
    async for piece in pieces:
        for step in packed.feed(piece):
            yield step
            await anyio.lowlevel.checkpoint()


def _is_plain(encoding: str) -> bool:
    return encoding.strip().lower() in ("", "identity")


class _Packed:
    """Decompresses a body that comes in pieces, in steps of a bounded size."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise ServerError(f"the answer is packed as {encoding!r}, which was not asked for")
        self._is_raw = False
        self._may_be_raw = encoding == "deflate"  # some servers leave the header out
        self._members = 1
        self._decoder = zlib.decompressobj(_ANY_HEADER)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Decompress the next piece.

        Raises:
            ServerError: if it can't be decompressed.
        """
        if self._may_be_raw and piece:
            self._may_be_raw, self._is_raw = False, piece[0] & 0x0F != zlib.DEFLATED
            self._decoder = self._new_decoder()
        while piece:
            if self._decoder.eof:
                self._begin_member()
            try:
                step = self._decoder.decompress(piece, _STEP)
            except zlib.error as error:
                raise ServerError(f"the answer can't be unpacked: {error}") from error
            piece = self._decoder.unused_data if self._decoder.eof else self._decoder.unconsumed_tail
            yield step

    def _begin_member(self) -> None:
        """Go on with the next of several compressed streams that follow each other."""
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise ServerError(f"the answer can't be unpacked: it is in more than {_MOST_MEMBERS} pieces")
        self._decoder = self._new_decoder()

    def _new_decoder(self) -> zlib._Decompress:
        return zlib.decompressobj(_NO_HEADER if self._is_raw else _ANY_HEADER)
