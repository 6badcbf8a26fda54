"""Points on two rings, turned against each other."""

import math

# EVOLVE-BLOCK-START
OUTER = 9
"""How many points are on the outer ring."""
INNER_RADIUS = 0.5
TURN = 0.23
"""By which part of a full turn the inner ring is turned."""
STRETCH = 0.05
"""By how much points are moved outwards, one after another."""


def ring(count: int, radius: float, turn: float) -> list[list[float]]:
    found = []
    for k in range(count):
        angle, far = 2 * math.pi * (k / count + turn), radius * (1 + STRETCH * k / count)
        found.append([far * math.cos(angle), far * math.sin(angle)])
    return found


def place(n: int) -> list[list[float]]:
    return ring(OUTER, 1.0, 0.0) + ring(n - OUTER, INNER_RADIUS, TURN)


# EVOLVE-BLOCK-END
