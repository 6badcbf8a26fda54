"""What flows between LEVI's stages, beside what other algorithms know, too. Candidates are named by their ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate

Operator = Literal["diverse", "variant", "mutate", "shift"]
"""A seed unlike others; a variant of a seed or a shift; a mutation; a paradigm shift."""


@payload("levi.Brief")
@dataclass(frozen=True, slots=True)
class Brief:
    """What is to be written. ``shown`` begins with the parent; a diverse seed or a shift is to be unlike them all."""

    operator: Operator
    shown: tuple[str, ...]
    advice: str = ""
    opening: bool = False
    """Whether it is one of the candidates that the archive is fitted to, which may take a share of the budget only."""
    earlier: tuple[str, ...] = ()
    """Shifts before this one."""

    @property
    def unlike(self) -> bool:
        """Whether it asks for something unlike what it shows: the large model's work."""
        return self.operator in ("diverse", "shift")


@payload("levi.Unwritten")
@dataclass(frozen=True, slots=True)
class Unwritten:
    """A try at a seed that could not be written, and why. ``last``: the opening has had its share of the budget."""

    reason: str
    last: bool = False


@payload("levi.Advice")
@dataclass(frozen=True, slots=True)
class Advice:
    """Advice for those who write the next candidates."""

    text: str


@payload("levi.Finalist")
@dataclass(frozen=True, slots=True)
class Finalist:
    """A candidate that is to be scored on all examples, or that was."""

    candidate: Candidate
    scored: bool = False
