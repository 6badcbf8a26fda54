"""Outputs whose reader may go away, as in ``flowevolve list | head -1``."""

from __future__ import annotations

import os
from io import UnsupportedOperation
from typing import IO


class LastingOutput:
    """Writes to a file until nobody reads it any more; what comes after that is lost, and no error."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        try:
            self._file.write(text)
        except BrokenPipeError:
            drop_output(self._file)

    def flush(self) -> None:
        try:
            self._file.flush()
        except BrokenPipeError:
            drop_output(self._file)


def drop_output(output: IO[str]) -> None:
    """Let what is written to an output whose reader has gone go nowhere, from now on."""
    try:
        number = output.fileno()
    except UnsupportedOperation:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
