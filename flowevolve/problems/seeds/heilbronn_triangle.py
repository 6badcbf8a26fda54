"""Points drawn at random in the triangle; of many draws the one whose smallest triangle is largest."""

import math
import random

# EVOLVE-BLOCK-START
SEED = 1
TRIES = 300
"""How many draws there are, of which the best is kept."""


def draw(n: int, rng: random.Random) -> list[list[float]]:
    """Points that are even over the triangle."""
    points = []
    for _ in range(n):
        right, up = sorted((rng.random(), rng.random()))
        points.append([right + (up - right) / 2, (up - right) * math.sqrt(3) / 2])
    return points


def least(points: list[list[float]]) -> float:
    """Twice the area of the smallest triangle."""
    smallest = math.inf
    for i, (a, b) in enumerate(points):
        for j in range(i):
            c, d = points[j][0] - a, points[j][1] - b
            for k in range(j):
                smallest = min(smallest, abs(c * (points[k][1] - b) - d * (points[k][0] - a)))
    return smallest


# EVOLVE-BLOCK-END


def place(n: int) -> list[list[float]]:
    rng = random.Random(SEED)
    return max((draw(n, rng) for _ in range(TRIES)), key=least)
