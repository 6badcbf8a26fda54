"""Plain data as bytes, for the exchange between an evaluator and a program in a sandbox of its own.

A message is JSON, followed by the bytes of arrays. Values that JSON can't represent are objects with one key, a tag.
Reading a message runs none of the sender's code: it creates only None, booleans, numbers, texts, bytes, lists, tuples,
sets, dicts, arrays and scalars of numpy, members of the reader's own enumerations, and whatever ``resolve`` returns for
the number of an object that stays with the sender.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import sys
from collections.abc import Callable, Collection
from enum import Enum, EnumType
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_TEXT = 2**25
"""The most bytes of a message's JSON."""
MOST_BYTES = 2**28
"""The most bytes of a message's arrays and byte strings together."""
MOST_EMPTY = 2**20
"""The most entries in a message's arrays of empty texts: this many take 4 MB."""
DEEPEST = 50
"""The deepest nesting of lists."""
_DIGITS = 4096
"""Integers of up to this many bits are written in decimal digits. Reading longer ones would take too long."""
_HEADER = struct.Struct("!QII")
"""A mark, the number of bytes of JSON, and the number of bytes after it."""
_MARK = 0x666C6F7765766F6C
_DTYPE = re.compile(r"[<>|=]?(?:[?biufcSU]\d*|[mM]8(?:\[\d*\w+\])?)")
_SIMPLE = frozenset({str, float, bool, type(None)})
"""Types that JSON can represent, except for integers, of which only short ones are written directly."""
_NESTED = frozenset({list, dict})

Refer = Callable[[object], object]
"""Returns what to write for an object that is not plain; raises NotPlainError if it may not be referred to."""
Resolve = Callable[[object], object]
"""Returns the object for what a `Refer` returned."""


class NotPlainError(TypeError):
    """Something is not plain data, or too much of it."""


def packed(value: object, refer: Refer) -> bytes:
    """The message for a value.

    Raises:
        NotPlainError: if the value is not plain data, too large or too deeply nested.
    """
    writer = _Writer(refer)
    try:
        text = json.dumps(writer.written(value, 0)).encode()
    except RecursionError:
        raise NotPlainError(f"data nested more than {DEEPEST} deep") from None
    size = sum(map(len, writer.blobs))
    if len(text) > MOST_TEXT or size > MOST_BYTES:
        raise NotPlainError(f"more than {MOST_TEXT} bytes of text or {MOST_BYTES} of arrays")
    return b"".join([_HEADER.pack(_MARK, len(text), size), text, *writer.blobs])


def send(descriptor: int, message: bytes) -> None:
    """Raises: OSError if the other end is gone."""
    left = memoryview(message)
    while left:
        left = left[os.write(descriptor, left[: 2**20]) :]


def receive(descriptor: int, resolve: Resolve) -> object:
    """Receive the next value.

    Raises:
        EOFError: if the other end is gone.
        ValueError: if the next bytes are no such message.
    """
    mark, text, size = _HEADER.unpack(_exactly(descriptor, _HEADER.size))
    if mark != _MARK or text > MOST_TEXT or size > MOST_BYTES:
        raise ValueError("it is no such message")
    try:
        said, blob = _exactly(descriptor, text), _exactly(descriptor, size)
        return _Reader(blob, resolve).read(json.loads(said), 0)
    except MemoryError:
        raise ValueError("it is too large for the memory here") from None
    except (ArithmeticError, LookupError, RecursionError, TypeError) as error:
        raise ValueError(f"it has another form: {error}") from None


def _exactly(descriptor: int, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = os.read(descriptor, min(count - len(parts), 2**20))
        if not part:
            raise EOFError("the other end is gone")
        parts += part
    return bytes(parts)


def _member(module: str, name: str, member: str) -> Enum:
    """The member of an enumeration that is also imported here."""
    kind: object = sys.modules.get(module)
    for part in name.split("."):
        kind = vars(kind).get(part) if isinstance(kind, ModuleType | EnumType) else None
    found: object = kind.__members__.get(member) if isinstance(kind, EnumType) else None
    if not isinstance(found, Enum):
        raise ValueError(f"an enumeration that is not known here: {module}.{name}")
    return found


class _Writer:
    def __init__(self, refer: Refer) -> None:
        self.blobs: list[bytes] = []
        self._refer = refer
        self._numpy = sys.modules.get("numpy")

    def written(self, value: object, depth: int) -> object:
        """The value in its JSON form."""
        if type(value) in _SIMPLE:
            return value
        if depth > DEEPEST:
            raise NotPlainError(f"data nested more than {DEEPEST} deep")
        if self._numpy is not None:
            if isinstance(value, self._numpy.generic):
                return {"scalar": self._array(self._numpy.asarray(value))}
            if isinstance(value, self._numpy.ndarray):
                return {"array": self._array(value)}
        if isinstance(value, Enum):
            kind = type(value)
            return {"member": [kind.__module__, kind.__qualname__, value.name]}
        match value:
            case int():
                number = int(value)
                return number if number.bit_length() <= _DIGITS else {"int": hex(number)}
            case float():
                return float(value)
            case str():
                return str(value)
            case complex():
                return {"complex": [value.real, value.imag]}
            case bytes() | bytearray():
                return {"bytes": self._blob(bytes(value))}
            case list():
                return self._all(value, depth)
            case tuple():
                return {"tuple": self._all(value, depth)}
            case set() | frozenset():
                return {"set" if isinstance(value, set) else "frozenset": self._all(value, depth)}
            case dict():
                pairs = value.items()
                return {"dict": [[self.written(key, depth + 1), self.written(each, depth + 1)] for key, each in pairs]}
        if self._numpy is not None and hasattr(value, "__array__") and not isinstance(value, type):
            return {"array": self._array(self._numpy.asarray(value))}
        return {"object": self._refer(value)}

    def _all(self, values: Collection[object], depth: int) -> list[object]:
        if _SIMPLE.issuperset(map(type, values)):  # long lists usually contain only numbers
            return list(values)
        return [self.written(each, depth + 1) for each in values]

    def _array(self, array: NDArray[np.generic]) -> object:
        if not _DTYPE.fullmatch(array.dtype.str):
            raise NotPlainError(f"an array of dtype {array.dtype}")
        return [array.dtype.str, list(array.shape), self._blob(array.tobytes())]

    def _blob(self, content: bytes) -> int:
        """Keep bytes to be sent after the JSON; returns how many there are."""
        self.blobs.append(content)
        return len(content)


class _Reader:
    def __init__(self, blob: bytes, resolve: Resolve) -> None:
        self._blob = blob
        self._at = 0
        self._empty = 0
        """How many entries arrays of empty texts have so far. They take bytes here but none in the message."""
        self._resolve = resolve

    def read(self, said: object, depth: int) -> object:
        if depth > DEEPEST:
            raise ValueError(f"data nested more than {DEEPEST} deep")
        if isinstance(said, list):
            if _NESTED.isdisjoint(map(type, said)):
                return said
            return [self.read(each, depth + 1) for each in said]
        if not isinstance(said, dict):
            return said
        ((tag, content),) = said.items()
        match tag, content:
            case "tuple" | "set" | "frozenset", list():
                made = {"tuple": tuple, "set": set, "frozenset": frozenset}[tag]
                return made(self.read(content, depth))
            case "dict", list():
                return {self.read(key, depth + 1): self.read(value, depth + 1) for key, value in content}
            case "array" | "scalar", [str(dtype), list(shape), int(size)]:
                array = self._array(dtype, shape, self._take(size))
                return array if tag == "array" else array[()]
            case "bytes", int(size):
                return self._take(size)
            case "complex", [float(real), float(imaginary)]:
                return complex(real, imaginary)
            case "member", [str(module), str(name), str(member)]:
                return _member(module, name, member)
            case "int", str(digits):
                return int(digits, 16)
            case "object", _:
                return self._resolve(content)
        raise ValueError(f"no such kind of data: {tag!r:.40}")

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._blob) - self._at:
            raise ValueError("bytes are missing")
        self._at += size
        return self._blob[self._at - size : self._at]

    def _array(self, dtype: str, shape: list[int], content: bytes) -> NDArray[np.generic]:
        import numpy  # noqa: PLC0415, ICN001 - evaluators without numpy get no arrays

        if not _DTYPE.fullmatch(dtype):
            raise ValueError(f"an array of dtype {dtype!r:.40}")
        kind = numpy.dtype(dtype)
        if kind.itemsize == 0:
            self._empty += abs(math.prod(shape))
            if self._empty > MOST_EMPTY:
                raise ValueError(f"more than {MOST_EMPTY} empty texts in arrays")
            return numpy.zeros(shape, kind)
        if kind.kind == "U":  # else numpy would raise an error of its own wherever such a text is used
            codes = numpy.frombuffer(content, numpy.dtype("u4").newbyteorder(kind.byteorder))
            if codes.size and codes.max() > sys.maxunicode:
                raise ValueError("an array of texts with characters that there are not")
        return numpy.frombuffer(content, kind).reshape(shape).copy()
