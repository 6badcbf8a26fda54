"""Topologies: which islands send migrants to which."""

from __future__ import annotations

from typing import Literal

Topology = Literal["ring", "complete", "empty"]


def neighbours(topology: Topology, island: int, count: int) -> tuple[int, ...]:
    """Where the migrants of an island go, in ascending order; the island itself is never among them.

    In a ring these are the islands on both sides.
    """
    if topology == "empty":
        return ()
    if topology == "ring":
        return tuple(sorted({(island - 1) % count, (island + 1) % count} - {island}))
    return tuple(other for other in range(count) if other != island)
