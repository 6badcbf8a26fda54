"""The points of a simplex with whole coordinates, written as digits."""

from itertools import product

# EVOLVE-BLOCK-START
DIMENSIONS = 3
SIZE = 3
"""What the coordinates of a point add up to at most."""


def numbers() -> list[int]:
    base = 2 * SIZE + 1
    points = [point for point in product(range(SIZE + 1), repeat=DIMENSIONS) if sum(point) <= SIZE]
    return [sum(digit * base**place for place, digit in enumerate(point)) for point in points]


# EVOLVE-BLOCK-END
