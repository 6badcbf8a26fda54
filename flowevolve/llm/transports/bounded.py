"""Bounds on what a server may send: no answer can fill the memory, or block the event loop, however it is packed.

Bodies are unpacked here and not by the HTTP libraries, step by step, so that reading ends where the bound is reached.
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
"""The encodings that `unpacked` knows, as a request asks for them."""
START_BYTES = 2**16
"""How much of an answer with a failure status is read."""

_STEP = 2**16
"""The most bytes that are unpacked without a turn for other tasks."""
_BYTES_A_PART = 16
_LEAST_PARTS = 2**18
_MOST_DEPTH = 64
_MOST_MEMBERS = 4096
_ANY_HEADER, _NO_HEADER = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS


@dataclass(frozen=True)
class ReplyBound:
    """How much of an answer is taken: ``most_bytes`` of its body, as it comes and once it is unpacked."""

    most_bytes: int = MAX_REPLY_BYTES

    @cached_property
    def most_parts(self) -> int:
        """How many values the JSON of an answer may have, lines its stream, and characters its text.

        Each takes many times the memory and the time that its bytes alone would take.
        """
        return max(_LEAST_PARTS, self.most_bytes // _BYTES_A_PART)

    def check_values(self, content: bytes) -> None:
        """Raises: RejectedError if JSON may have too many values, by the marks that begin or part them."""
        most = self.most_parts
        if len(content) > most and values_in(content) > most:
            raise self.error(f"has more than {most} values")

    def check_reply(self, reply: ChatReply) -> None:
        """Raises: RejectedError if its texts are too long, or what is kept beside them can't be written."""
        if len(reply.text) + len(reply.thinking) > self.most_parts:
            raise self.error(f"has a text of more than {self.most_parts} characters", reply.usage)
        if reply.logprobs is not None and _is_deeper(reply.logprobs):
            what = f"more than {_MOST_DEPTH} lists and objects inside each other"
            raise RejectedError(f"the answer has {what} in its logprobs", usage=reply.usage)

    def error(self, what: str, usage: Usage | None = None) -> RejectedError:
        """The error of an answer that is too much. The same request would only give, and cost, the same again."""
        told = f"the answer {what}: raise llm.max_reply_bytes if that is right"
        return RejectedError(told) if usage is None else RejectedError(told, usage=usage)


DEFAULT_BOUND = ReplyBound()


def values_in(content: bytes) -> int:
    """How many values JSON has at most."""
    return content.count(b",") + content.count(b"[") + content.count(b"{")


def _is_deeper(value: JSON) -> bool:
    """Whether JSON has more lists and objects inside each other than `_MOST_DEPTH`."""
    level = [value]
    for _ in range(_MOST_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


async def bounded(pieces: AsyncIterable[bytes], encoding: str, bound: ReplyBound) -> AsyncIterator[bytes]:
    """The unpacked pieces of a body, up to the bound. ``encoding`` is its ``Content-Encoding``.

    Raises:
        RejectedError: if more comes, or more is in it.
        ServerError: if it can't be unpacked.
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
    """The unpacked pieces of a body, of which only the beginning is wanted: those up to about `START_BYTES`."""
    seen = 0
    async for piece in bounded(pieces, encoding, DEFAULT_BOUND):
        yield piece[:START_BYTES]
        seen += len(piece)
        if seen >= START_BYTES:
            return


async def unpacked(pieces: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The unpacked pieces of a body; some may be empty.

    Raises:
        ServerError: if it can't be unpacked.
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
    """Unpacks a body that comes in pieces, in steps of a bounded size."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise ServerError(f"the answer is packed as {encoding!r}, which was not asked for")
        self._is_raw = False
        self._may_be_raw = encoding == "deflate"  # some servers leave the header out
        self._members = 1
        self._decoder = zlib.decompressobj(_ANY_HEADER)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The next bytes.

        Raises:
            ServerError: if they can't be unpacked.
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
        """Go on with what follows what was packed by itself."""
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise ServerError(f"the answer can't be unpacked: it is in more than {_MOST_MEMBERS} pieces")
        self._decoder = self._new_decoder()

    def _new_decoder(self) -> zlib._Decompress:
        return zlib.decompressobj(_NO_HEADER if self._is_raw else _ANY_HEADER)
