"""A problem whose programs can be made as long as needed, to measure what depends on their length alone."""

from __future__ import annotations

from importlib import resources

from flowevolve.core.artifact import Artifact
from flowevolve.problems import seeds
from flowevolve.problems.base import seed_text
from flowevolve.problems.distances import MinMaxDistance
from flowevolve.programs.problem import PROGRAM
from flowevolve.sim.service_model import count_tokens

_NOT_CARRIED = ("from __future__", "# EVOLVE-BLOCK")
"""Lines that begin like this are left out, because they would have a meaning of their own in another file."""


class LongProgram(MinMaxDistance):
    """Places sixteen points in the plane with a program of at least ``tokens`` tokens.

    The seeds of other problems come before this problem's own seed, outside of its EVOLVE-BLOCK marks: as comments, or
    with ``live`` as functions that nobody calls. So the part that may change is the same at every length.
    """

    def __init__(self, tokens: int = 0, *, live: bool = False) -> None:
        super().__init__(16, 2, reference=1 / 12.88923)
        carried: list[str] = []
        own = seed_text(self.name)
        others = _others(own)
        while count_tokens("\n\n".join([*carried, own])) < tokens:
            text = others[len(carried) % len(others)]
            carried.append(text if live else "\n".join(f"# {line}".rstrip() for line in text.split("\n")))
        self._text = "\n\n".join([*carried, own])

    def seed(self) -> Artifact:
        return Artifact({PROGRAM: self._text}, kind="program")


def _others(own: str) -> list[str]:
    """The texts of the other problems' seeds, sorted by file name, without what belongs at the top of a file."""
    files = sorted(resources.files(seeds).iterdir(), key=lambda each: each.name)
    texts = [each.read_text(encoding="utf-8") for each in files if each.name.endswith(".py")]
    kept = [
        "\n".join(line for line in text.split("\n") if not line.startswith(_NOT_CARRIED))
        for text in texts
        if "def " in text and text != own
    ]
    return [text.strip() for text in kept]
