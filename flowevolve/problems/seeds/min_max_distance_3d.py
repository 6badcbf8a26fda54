"""Points on rings in layers."""

import math

# EVOLVE-BLOCK-START
LAYERS = [(-1.0, 1.0, 4, 0.0), (0.0, 1.5, 6, 0.0), (1.0, 1.0, 4, 0.0)]
"""Of each layer the height, the radius of its ring, how many points it has, and where the first one is, in degrees."""


def ring(height: float, radius: float, count: int, first: float) -> list[list[float]]:
    """Points at equal steps."""
    turns = [math.radians(first + 360 * k / count) for k in range(count)]
    return [[radius * math.cos(turn), radius * math.sin(turn), height] for turn in turns]


def place(n: int, dimensions: int) -> list[list[float]]:
    points = []
    for height, radius, count, first in LAYERS:
        points += ring(height, radius, count, first)
    return points[:n]


# EVOLVE-BLOCK-END
