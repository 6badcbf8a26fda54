"""Placing, heaviest first: a GPU is filled before the next one is begun."""

from __future__ import annotations


def place(loads: list[float], counts: list[int], gpus: int) -> list[list[int]]:
    weight = 0.5
    shift = 0.5
    pieces = [expert for expert, count in enumerate(counts) for _ in range(count)]
    pieces.sort(key=lambda expert: -(loads[expert] ** weight) / counts[expert])
    room = -(-len(pieces) // gpus)
    begin = int(shift * room)
    turned = pieces[begin:] + pieces[:begin]
    return [turned[gpu * room : gpu * room + room] for gpu in range(gpus)]
