"""Bounds on what a server may send: no answer can fill the memory, or block the event loop, however it is packed.

Bodies are unpacked here and not by the HTTP libraries, step by step, so that reading ends where the bound is reached.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator

import anyio.lowlevel

from flowevolve.core.model import RejectedError, ServerError

MAX_REPLY_BYTES = 32 * 2**20
ACCEPTED = "gzip, deflate"
"""The encodings that `unpacked` knows, as a request asks for them."""
START_BYTES = 2**16
"""How much of an answer with a failure status is read."""

_STEP = 2**18
"""The most bytes that are unpacked without a turn for other tasks."""
_ANY_HEADER, _NO_HEADER = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS


async def bounded(pieces: AsyncIterable[bytes], encoding: str, most: int) -> AsyncIterator[bytes]:
    """The unpacked pieces of a body, up to ``most`` bytes in all. ``encoding`` is its ``Content-Encoding``.

    Raises:
        RejectedError: if there is more.
        ServerError: if it can't be unpacked.
    """
    left = most
    async for piece in unpacked(pieces, encoding):
        left -= len(piece)
        if left < 0:
            raise RejectedError(f"the answer is longer than {most} bytes: raise llm.max_reply_bytes if that is right")
        yield piece


async def start_of_body(pieces: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The unpacked pieces of a body, of which only the beginning is wanted: those up to about `START_BYTES`."""
    seen = 0
    async for piece in unpacked(pieces, encoding):
        yield piece[:START_BYTES]
        seen += len(piece)
        if seen >= START_BYTES:
            return


async def unpacked(pieces: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The unpacked pieces of a body.

    Raises:
        ServerError: if it can't be unpacked.
    """
    if encoding.strip().lower() in ("", "identity"):
        async for piece in pieces:
            yield piece
        return
    packed = _Packed(encoding.strip().lower())
    async for piece in pieces:
        for step in packed.feed(piece):
            yield step
            await anyio.lowlevel.checkpoint()


class _Packed:
    """Unpacks a body that comes in pieces, in steps of a bounded size."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise ServerError(f"the answer is packed as {encoding!r}, which was not asked for")
        self._is_raw = False
        self._may_be_raw = encoding == "deflate"  # some servers leave the header out
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
            if self._decoder.eof:  # another member follows
                self._decoder = self._new_decoder()
            try:
                step = self._decoder.decompress(piece, _STEP)
            except zlib.error as error:
                raise ServerError(f"the answer can't be unpacked: {error}") from error
            piece = self._decoder.unused_data if self._decoder.eof else self._decoder.unconsumed_tail
            if step:
                yield step

    def _new_decoder(self) -> zlib._Decompress:
        return zlib.decompressobj(_NO_HEADER if self._is_raw else _ANY_HEADER)
