"""Small files by system calls alone: a fresh fork copies every page of the interpreter that it touches."""

from __future__ import annotations

import os

_ENOUGH = 2**16


def read(path: str) -> bytes:
    """The beginning of a file, more than the files of ``/proc`` have that are read here."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _ENOUGH)
    finally:
        os.close(descriptor)


def write(path: str, content: bytes) -> None:
    """The file anew."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)
