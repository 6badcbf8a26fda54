"""Messages between the engine and a sandbox: a length of four bytes, then that many bytes."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_LENGTH = struct.Struct("!I")

READY = b"ready"

Stopped = Literal["timeout", "memory", "processes", "deserted"]
"""Why a program was ended from outside. ``deserted`` means that the other end of the control socket is gone."""
Scalar = str | int | float | bool | None
JSON = Scalar | list["JSON"] | dict[str, "JSON"]


@dataclass(frozen=True, slots=True)
class Request:
    """One program and its limits. Sizes are in bytes, times in seconds."""

    source: str
    name: str
    """The name of the program's file in its own folder."""
    call: str | None
    """The function whose return value is the result; if None, the result is the global variable ``result``."""
    arguments: JSON
    command: list[str] | None
    """The command that runs the file; if None, the program is Python and runs in a fork of the zygote."""
    timeout: float
    memory: int
    disk: int
    processes: int
    output_limit: int
    result_limit: int
    core: int | None
    sample_seconds: float
    folder: str | None
    """The program's own folder if there are no namespaces; with namespaces it is None, and a fresh ``/tmp`` is used."""
    packages: list[str] | None
    """The packages that a Python program may import besides the standard library; if None, all that are installed."""


@dataclass(frozen=True, slots=True)
class Report:
    """The supervisor's report on a program. The output and the result follow as messages of their own."""

    code: int
    """The exit code, or minus the number of the signal that ended the program."""
    stopped: Stopped | None
    seconds: float
    cpu_seconds: float
    peak: int
    """The peak memory in bytes."""
    samples: list[list[float]]
    """Pairs of the seconds since the start and the bytes of memory in use then."""


def packed(message: Request | Report) -> bytes:
    """The message as JSON, without the copies that `dataclasses.asdict` makes."""
    return json.dumps({name: getattr(message, name) for name in message.__slots__}).encode()


def send(connection: socket.socket, message: bytes, descriptors: Sequence[int] = ()) -> None:
    """Send a message and, with it, descriptors, which stay open here."""
    length = _LENGTH.pack(len(message))
    if descriptors:
        socket.send_fds(connection, [length], descriptors)
        length = b""
    connection.sendall(length + message)


def receive(connection: socket.socket, limit: int) -> bytes:
    """The next message.

    Raises:
        EOFError: if the other end is gone.
        ValueError: if the message is longer than ``limit`` bytes.
    """
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    return _limited(connection, length, limit)


def receive_with_descriptors(connection: socket.socket, limit: int, most: int) -> tuple[bytes, list[int]]:
    """The next message, and up to ``most`` descriptors that came with it. Raises the same errors as `receive`."""
    head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH.size, most)
    if not head:
        raise EOFError("the other end is gone")
    (length,) = _LENGTH.unpack(head + _exactly(connection, _LENGTH.size - len(head)))
    return _limited(connection, length, limit), descriptors


def _limited(connection: socket.socket, length: int, limit: int) -> bytes:
    if length > limit:
        raise ValueError(f"a message of {length} bytes, {limit} are the limit")
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(min(count - len(parts), 2**20))
        if not part:
            raise EOFError("the other end is gone")
        parts += part
    return bytes(parts)
