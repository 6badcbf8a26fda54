"""What a run's events say about one item, and about one stage that items go through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass
class Live:
    """An item that was begun and has not ended."""

    stage: str
    flow: int
    version: int
    derives: tuple[str, ...]
    repairs: int = 0
    state: Literal["waiting", "taken", "discard", "repair"] = "waiting"
    ticket: bool = False
    children: int = 0
    again: bool = False
    """Whether the work on it was interrupted and is done again."""


@dataclass
class StageBooks:
    """What went through one stage."""

    taken: int = 0
    consumed: int = 0
    discarded: int = 0
    gaps: int = 0
    rollouts: int = 0
    tokens: int = 0
