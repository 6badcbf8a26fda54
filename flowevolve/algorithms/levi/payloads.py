"""What flows between LEVI's stages, besides payloads that algorithms share. Candidates are named by their ids."""

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
    """A candidate to write. ``shown`` begins with the parent; a diverse seed or a shift must differ from them all."""

    operator: Operator
    shown: tuple[str, ...]
    advice: str = ""
    opening: bool = False
    """Whether it is one of the candidates that the archive is fitted to, which may use only a share of the budget."""
    earlier: tuple[str, ...] = ()
    """Shifts before this one."""

    @property
    def unlike(self) -> bool:
        """Whether it asks for a candidate unlike those that it shows, which is the large model's work."""
        return self.operator in ("diverse", "shift")


@payload("levi.Unwritten")
@dataclass(frozen=True, slots=True)
class Unwritten:
    """A try at a seed that could not be written, and why. ``last``: the opening has used up its share of the budget."""

    reason: str
    last: bool = False


@payload("levi.Advice")
@dataclass(frozen=True, slots=True)
class Advice:
    """Advice for the models that write the next candidates."""

    text: str


@payload("levi.Finalist")
@dataclass(frozen=True, slots=True)
class Finalist:
    """A candidate that is to be scored on all examples or, with ``scored``, that was."""

    candidate: Candidate
    scored: bool = False
