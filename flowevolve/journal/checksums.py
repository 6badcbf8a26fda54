"""Checksums of what a journal holds: one for each event and each call, and one for each payload, stored with its event.

Every run has an id of its own, which goes into all checksums of its rows, so that a row of another run is recognized as
foreign. A checksum reveals damage, not forgery: whoever can write to the journal can write checksums, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32


def seed_of(run: str) -> int:
    """The value with which the checksums of the run with this id begin."""
    return crc32(run.encode())


def checksum(seed: int, values: Sequence[object]) -> int:
    """The checksum of a row. ``values`` are its columns as SQLite returns them: a whole number in a column of reals as
    a float, and a bool as 0 or 1.

    Raises:
        UnicodeEncodeError: if a text holds a lone surrogate, which no column can hold as text either.
    """
    plain = [value if type(value) is str else str(len(value) if type(value) is bytes else value) for value in values]
    found = crc32("\0".join(plain).encode(), seed)
    for value in values:
        if type(value) is bytes:
            found = crc32(value, found)
    return found


def payload_checksum(data: bytes) -> int:
    """The checksum of a payload, which the row of its event holds."""
    return crc32(data)
