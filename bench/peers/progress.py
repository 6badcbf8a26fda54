"""What a method reports while it evolves: the same few facts for all methods, each with its time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

Kind = Literal["began", "proposed", "validated", "accepted"]


@dataclass(frozen=True, slots=True)
class Progress:
    """``began``: set up and about to make its first call; ``proposed``: a new candidate was written; ``validated``: a
    candidate's validation ended with a verdict; ``accepted``: it entered the pool, with ``score``, its mean over the
    validation examples. The seed is validated and accepted first of all.

    ``seconds`` is monotonic time, the same for all processes of a machine; ``cpu`` is the CPU time of this process.
    """

    kind: Kind
    seconds: float
    cpu: float
    score: float | None = None

    def line(self) -> str:
        return json.dumps(asdict(self))


ServerListener = Callable[[Kind, float | None], None]
"""Is given what happened, and the score if that is ``accepted``. It may be called from any thread."""


def read_progress(line: str) -> Progress:
    return Progress(**json.loads(line))


def print_progress(kind: Kind, score: float | None = None) -> None:
    """A `ServerListener` that writes a line to standard output, in one piece."""
    progress = Progress(kind, time.monotonic(), time.process_time(), score)
    print(progress.line() + "\n", end="", flush=True)
