"""What a method reports while it evolves: the same few facts for all methods, each with its time."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

Kind = Literal["began", "opened", "proposed", "validated", "stopped", "accepted", "best"]


@dataclass(frozen=True, slots=True)
class Progress:
    """``began``: the method is set up and about to make its first call; ``opened``: one proposal more than ever before
    is under way, which lasts from the choice of its parent to its verdict; ``proposed``: a new candidate was written;
    ``validated``: a candidate was validated on all examples; ``stopped``: the validation of a candidate ended before
    that, with a verdict; ``accepted``: a candidate entered the pool with ``score``, its mean over the validation
    examples; ``best``: from now on the method would return the candidate with this ``text``. The seed is validated and
    accepted first of all.

    ``seconds`` is monotonic time, the same for all processes of a machine; ``cpu`` is the CPU time of this process.
    """

    kind: Kind
    seconds: float
    cpu: float
    score: float | None = None
    text: str | None = None

    def line(self) -> str:
        return json.dumps(asdict(self))


class Listener(Protocol):
    def __call__(self, kind: Kind, score: float | None = None, text: str | None = None) -> None:
        """Receive what happened, as in `Progress`. May be called from any thread."""


def tell_width(tell: Listener, width: int) -> None:
    """Report that ``width`` proposals are under way, for a method that always has this many."""
    for _ in range(width):
        tell("opened")


class Best:
    """Reports each candidate that scores higher than all before it."""

    def __init__(self, tell: Listener) -> None:
        self._tell = tell
        self._score = float("-inf")

    def consider(self, score: float, text: str) -> None:
        if score > self._score:
            self._score = score
            self._tell("best", score, text)


def read_progress(line: str) -> Progress:
    return Progress(**json.loads(line))


def print_progress(kind: Kind, score: float | None = None, text: str | None = None) -> None:
    """A `Listener` that writes a line to the process's standard output, in one piece."""
    progress = Progress(kind, time.monotonic(), time.process_time(), score, text)
    print(progress.line() + "\n", end="", flush=True, file=sys.__stdout__)
