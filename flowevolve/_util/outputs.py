"""Outputs whose reader may go away, as in ``flowevolve list | head -1``."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import UnsupportedOperation
from typing import IO

_GONE = (errno.EPIPE, errno.EIO)
"""The errors of writing when a pipe's reader, or the terminal, has gone."""


class LastingOutput:
    """Writes to a file until nobody reads it any more; later output is dropped without an error.

    Characters that the file's encoding does not have become question marks.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with _lasting(self._file):
            try:
                self._file.write(text)
            except UnicodeEncodeError:
                self._file.write(text.encode(self.encoding, "replace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        with _lasting(self._file):
            self._file.flush()

    def isatty(self) -> bool:
        return self._file.isatty()

    def fileno(self) -> int:
        return self._file.fileno()

    @property
    def encoding(self) -> str:
        named: str | None = getattr(self._file, "encoding", None)
        return named or "utf-8"


@contextmanager
def _lasting(file: IO[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _GONE:
            raise
        drop_output(file)


def drop_output(output: IO[str]) -> None:
    """From now on, drop everything that is written to an output whose reader has gone."""
    try:
        number = output.fileno()
    except UnsupportedOperation:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
