"""Reads and writes small files by plain system calls, because a fork copies each page of the interpreter that it
touches.
"""

from __future__ import annotations

import os

_ENOUGH = 2**16


def read(path: str) -> bytes:
    """The first 64 KiB of a file. The files in ``/proc`` that are read here are shorter."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _ENOUGH)
    finally:
        os.close(descriptor)


def write(path: str, content: bytes) -> None:
    """Write a file, replacing its content."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)
