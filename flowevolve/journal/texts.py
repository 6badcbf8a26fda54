"""How a journal stores texts: every text comes back exactly as it was, and one that recurs is stored once."""

from __future__ import annotations

import sqlite3
import zlib
from functools import lru_cache
from hashlib import blake2b

SHORT = 1000
"""Bytes up to which a text is stored as it is."""
REMEMBERED = 8192
"""For how many texts a writer remembers the numbers; the numbers of others it looks up."""
RECENT = 256
"""For how many texts a writer keeps the keys. Most messages of a call are also in calls shortly before it."""

_FIND = "SELECT id FROM texts WHERE hash = ?"
_ADD = "INSERT INTO texts (hash, data) VALUES (?, ?)"


def pack(text: str) -> str | bytes:
    """A text as a column holds it: itself, or as compressed bytes if it is long or holds lone surrogates."""
    if len(text) <= SHORT and text.isascii():
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= SHORT and is_unicode(text):
        return text
    return zlib.compress(data, 1)


def unpack(stored: str | bytes) -> str:
    """The text that `pack` was given."""
    return stored if isinstance(stored, str) else zlib.decompress(stored).decode("utf-8", "surrogatepass")


def text_key(text: str) -> bytes:
    """The hash of a text that the column ``hash`` holds."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Texts:
    """The numbers of texts in the table ``texts``. A text gets its number when it is first seen."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._numbers: dict[bytes, int] = {}
        self._key = lru_cache(RECENT)(text_key)

    def number(self, text: str) -> int:
        key = self._key(text)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._find_or_add(key, text)
            if len(self._numbers) > REMEMBERED:
                del self._numbers[next(iter(self._numbers))]
        return number

    def _find_or_add(self, key: bytes, text: str) -> int:
        row = self._database.execute(_FIND, (key,)).fetchone()
        if row is not None:
            return int(row[0])
        number = self._database.execute(_ADD, (key, pack(text))).lastrowid
        assert number is not None
        return number


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can encode a text, which is so if it has no lone surrogates. Replies have them at times."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
