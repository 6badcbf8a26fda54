"""Placing in turn: of the pieces by weight each GPU gets one, and then each gets another."""

from __future__ import annotations


def place(loads: list[float], counts: list[int], gpus: int) -> list[list[int]]:
    slope = 0.5
    start = 0.5
    pieces = [expert for expert, count in enumerate(counts) for _ in range(count)]
    ranked = sorted(pieces, key=lambda expert: -loads[expert] / counts[expert] ** slope)
    first = int(start * gpus)
    return [ranked[(gpu + first) % gpus :: gpus] for gpu in range(gpus)]
