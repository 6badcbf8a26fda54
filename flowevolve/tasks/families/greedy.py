"""Placing, expert by expert: each copy goes to the GPU with the least load that has room."""

from __future__ import annotations


def place(loads: list[float], counts: list[int], gpus: int) -> list[list[int]]:
    pull = 0.5
    crowd = 0.5
    room = sum(counts) // gpus
    found: list[list[int]] = [[] for _ in range(gpus)]
    carried = [0.0 for _ in range(gpus)]
    for expert, count in enumerate(counts):
        for _ in range(count):
            open_ones = [gpu for gpu in range(gpus) if len(found[gpu]) < room] or list(range(gpus))
            least = min(open_ones, key=lambda gpu: pull * carried[gpu] + crowd * len(found[gpu]))
            found[least].append(expert)
            carried[least] += loads[expert] / count
    return found
