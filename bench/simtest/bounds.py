"""What a process of a run may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flowevolve.core.graph import Graph


@dataclass(frozen=True)
class Bounds:
    """What the books of a process check events against."""

    graph: Graph
    lockstep: bool
    width: int
    """The most flows at a time in lockstep."""
    workers: Mapping[str, int]
    limits: Mapping[str, float]
    """The limits of the budget, including that in seconds."""
    allocates: bool
    """Whether workers are moved between stages."""
