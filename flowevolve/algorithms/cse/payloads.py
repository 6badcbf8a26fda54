"""What flows between CSE's stages, besides payloads shared with other algorithms. Candidates are named by their ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flowevolve.core.payload_kinds import payload
from flowevolve.core.pool import Candidate
from flowevolve.programs.parts import Slot

Operator = Literal["mutate", "crossover", "refine"]
"""A controlled mutation, a compositional crossover; ``refine``: a child of one parent, without slots."""


@payload("cse.Planned")
@dataclass(frozen=True, slots=True)
class Planned:
    """A program to be written to a plan, which may be empty. ``form`` is the task's seed, which shows the form."""

    plan: str
    form: Candidate
    recalled: str = ""
    """What was learnt with other tasks."""


@payload("cse.Brief")
@dataclass(frozen=True, slots=True)
class Brief:
    """A child to be written, and what it is written from."""

    operator: Operator
    parents: tuple[str, ...]
    """The program to change, and with ``crossover`` the other one."""
    best: str
    """The best program when the parents were selected."""
    local: str = ""
    """What this run has learnt, as prompts show it."""
    recalled: str = ""
    """What was learnt with other tasks."""
    slots: tuple[tuple[Slot, ...], ...] = ()
    """The slots of each parent; none for a parent that was not taken apart."""
    failed: tuple[str, ...] = ()
    """The programs that failed last when the parents were selected."""

    @property
    def advice(self) -> str:
        return "\n\n".join(text for text in (self.local, self.recalled) if text)
