"""What flows between CodeEvolve's stages: frozen, plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate

Operator = Literal["start", "exploit", "explore"]


@payload("code_evolve.Chosen")
@dataclass(frozen=True, slots=True)
class Chosen:
    """What an island's next program is made from.

    ``ancestors`` come oldest first. ``failed`` is the last program written with this prompt that failed, if any did.
    """

    island: int
    operator: Operator
    parent: Candidate
    prompt: Candidate
    ancestors: tuple[Candidate, ...] = ()
    inspirations: tuple[Candidate, ...] = ()
    failed: Candidate | None = None


@payload("code_evolve.Prompted")
@dataclass(frozen=True, slots=True)
class Prompted:
    """A new prompt, and what it will be used on."""

    candidate: Candidate
    chosen: Chosen


@payload("code_evolve.Made")
@dataclass(frozen=True, slots=True)
class Made:
    """A program, and the prompt it was written with if that is new: both enter their pools or neither does."""

    program: Candidate
    prompt: Candidate | None = None

    @property
    def carried(self) -> Sequence[Candidate]:
        return (self.program,) if self.prompt is None else (self.program, self.prompt)
