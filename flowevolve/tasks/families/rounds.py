"""Copies, one after another: each goes to the expert with the most load on each of its copies."""

from __future__ import annotations


def copies(loads: list[float], slots: int) -> list[int]:
    trust = 0.5
    spare = 0.5
    mean = sum(loads) / len(loads)
    wanted = [trust * load + mean - trust * mean for load in loads]
    counts = [1 for _ in loads]
    while sum(counts) < slots:
        heaviest = max(range(len(loads)), key=lambda expert: wanted[expert] / (counts[expert] + spare))
        counts[heaviest] += 1
    return counts
