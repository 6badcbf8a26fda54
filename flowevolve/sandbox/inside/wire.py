"""Messages between the engine and a sandbox: a length of four bytes, then that many bytes."""

from __future__ import annotations

import json
import socket
import struct
from dataclasses import dataclass
from typing import Literal

_LENGTH = struct.Struct("!I")

READY = b"ready"

Stopped = Literal["timeout", "memory", "processes", "deserted"]
"""Why a program was ended from outside; ``deserted``: there is nobody left to report to."""
Scalar = str | int | float | bool | None
JSON = Scalar | list["JSON"] | dict[str, "JSON"]


@dataclass(frozen=True, slots=True)
class Request:
    """One program and its limits. Sizes in bytes, times in seconds."""

    source: str
    name: str
    """The file it is written to, in the program's own folder."""
    call: str | None
    """The function whose return value is the result; without one, the global ``result`` is."""
    arguments: JSON
    command: list[str] | None
    """What runs the file; without one, it is Python and runs here."""
    timeout: float
    memory: int
    disk: int
    processes: int
    output_limit: int
    result_limit: int
    core: int | None
    sample_seconds: float
    folder: str | None
    """The program's own folder where there are no namespaces; with them it is a fresh ``/tmp``."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a program, as seen from outside its process. Output and result follow as messages of their own."""

    code: int
    """As from ``waitpid``: an exit code, or minus the signal's number."""
    stopped: Stopped | None
    seconds: float
    cpu_seconds: float
    peak: int
    """Bytes of memory."""
    samples: list[list[float]]
    """Seconds since the start, bytes."""


def packed(message: Request | Report) -> bytes:
    """As JSON; unlike `dataclasses.asdict` it copies nothing."""
    return json.dumps({name: getattr(message, name) for name in message.__slots__}).encode()


def send(connection: socket.socket, message: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(message)) + message)


def receive(connection: socket.socket, limit: int) -> bytes:
    """The next message.

    Raises:
        EOFError: if the other end is gone.
        ValueError: if the message is longer than ``limit`` bytes.
    """
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
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
