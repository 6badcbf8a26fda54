"""Circles on rows in a rectangle of perimeter 4; their radii follow from where the centres are."""

import math

# EVOLVE-BLOCK-START
WIDTH = 1.0
COLUMNS = 5
ROW_SHIFT = 0.0
"""Of a column's width, by which every other row is moved to the right."""
EDGE = 0.5
"""How far the outermost centres are from the border, in widths of a column."""


def centres(n: int) -> list[tuple[float, float]]:
    """Places on rows of equal length, from below."""
    rows = math.ceil(n / COLUMNS)
    across = WIDTH / (COLUMNS - 1 + 2 * EDGE + ROW_SHIFT)
    upward = (2 - WIDTH) / (rows - 1 + 2 * EDGE)
    places = []
    for i in range(n):
        row, column = divmod(i, COLUMNS)
        places.append(((column + EDGE + ROW_SHIFT * (row % 2)) * across, (row + EDGE) * upward))
    return places


def radii(places: list[tuple[float, float]]) -> list[float]:
    """Each circle grows to the border, or half way to its nearest neighbour."""
    found = []
    for i, (x, y) in enumerate(places):
        border = min(x, WIDTH - x, y, 2 - WIDTH - y)
        nearest = min(math.dist((x, y), other) for j, other in enumerate(places) if j != i)
        found.append(min(border, nearest / 2))
    return found


# EVOLVE-BLOCK-END


def pack(n: int) -> list[list[float]]:
    places = centres(n)
    return [[x, y, radius] for (x, y), radius in zip(places, radii(places), strict=True)]
