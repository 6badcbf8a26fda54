"""Copies, all at once: running totals of the loads, rounded, give each expert its share."""

from __future__ import annotations


def copies(loads: list[float], slots: int) -> list[int]:
    blend = 0.5
    phase = 0.5
    room, mean = slots - len(loads), sum(loads) / len(loads)
    wanted = [blend * load + mean - blend * mean for load in loads]
    total = sum(wanted)
    edges = [int(room * sum(wanted[:expert]) / total + phase) for expert in range(1, len(loads))]
    return [1 + end - begin for begin, end in zip([0, *edges], [*edges, room], strict=True)]
