"""Placing to and fro: from the first GPU to the last, and then from the last to the first."""

from __future__ import annotations


def place(loads: list[float], counts: list[int], gpus: int) -> list[list[int]]:
    damp = 0.5
    turn = 0.5
    pieces = [expert for expert, count in enumerate(counts) for _ in range(count)]
    ranked = sorted(pieces, key=lambda expert: -loads[expert] / (counts[expert] + damp))
    found: list[list[int]] = [[] for _ in range(gpus)]
    path = [*range(gpus), *reversed(range(gpus))]
    first = round(turn) * gpus
    for number, expert in enumerate(ranked):
        found[path[(number + first) % len(path)]].append(expert)
    return found
