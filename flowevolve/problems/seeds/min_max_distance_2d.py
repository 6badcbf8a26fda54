"""Points on rings around a middle."""

import math

# EVOLVE-BLOCK-START
RINGS = [(0.0, 1, 0.0), (1.2, 5, 0.0), (2.0, 10, 0.0)]
"""Of each ring the radius, how many points it has, and where the first one is, in degrees."""


def ring(radius: float, count: int, first: float) -> list[list[float]]:
    """Points at equal steps."""
    turns = [math.radians(first + 360 * k / count) for k in range(count)]
    return [[radius * math.cos(turn), radius * math.sin(turn)] for turn in turns]


def place(n: int, dimensions: int) -> list[list[float]]:
    points = []
    for radius, count, first in RINGS:
        points += ring(radius, count, first)
    return points[:n]


# EVOLVE-BLOCK-END
