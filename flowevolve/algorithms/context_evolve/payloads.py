"""What flows between ContextEvolve's stages before there is a program: frozen, plain data."""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate


@payload("context_evolve.Chosen")
@dataclass(frozen=True, slots=True)
class Chosen:
    """An example, and why it was chosen."""

    program: Candidate
    why: str = ""


@payload("context_evolve.Step")
@dataclass(frozen=True, slots=True)
class Step:
    """What the next program will be written with, as far as that is decided."""

    parent: Candidate
    guidance: str = ""
    guided: int | None = None
    """The version of the pool at which the guidance was written; None without guidance."""
    examples: tuple[Chosen, ...] = ()
    failed: tuple[str, ...] = ()
    """The programs that failed last when the parent was selected, by their ids."""
