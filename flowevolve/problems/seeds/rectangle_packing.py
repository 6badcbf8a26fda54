"""Circles on rows in a rectangle of perimeter 4; their radii follow from where the centres are."""

import math

# EVOLVE-BLOCK-START
WIDTH = 1.0
HEIGHT = 2 - WIDTH
COLUMNS = 5
ROW_SHIFT = 0.0
"""Of a column's width, by which every other row is moved to the right."""
EDGE = 0.8
"""How far the outermost centres are from the border, in widths of a column."""
ROUNDS = 20
"""How often centres push each other away."""
STEP = 0.000001
"""How strongly."""
POWER = 6.0
"""How much less from afar."""
GROW = 0.5
"""How much of the gap to its neighbours a circle takes, in the end."""


def centres(n: int) -> list[tuple[float, float]]:
    """Places on rows of equal length, from below."""
    rows = math.ceil(n / COLUMNS)
    across = WIDTH / (COLUMNS - 1 + 2 * EDGE + ROW_SHIFT)
    upward = HEIGHT / (rows - 1 + 2 * EDGE)
    places = []
    for i in range(n):
        row, column = divmod(i, COLUMNS)
        places.append(((column + EDGE + ROW_SHIFT * (row % 2)) * across, (row + EDGE) * upward))
    return places


def spread(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Centres push each other away, and are pushed by their images behind the borders."""
    for _ in range(ROUNDS):
        moved = []
        for i, (x, y) in enumerate(places):
            others = [other for j, other in enumerate(places) if j != i]
            pushes = [*others, (-x, y), (2 * WIDTH - x, y), (x, -y), (x, 2 * HEIGHT - y)]
            across = sum((x - a) / math.hypot(x - a, y - b) ** POWER for a, b in pushes)
            upward = sum((y - b) / math.hypot(x - a, y - b) ** POWER for a, b in pushes)
            moved.append((inside(x + STEP * across, WIDTH), inside(y + STEP * upward, HEIGHT)))
        places = moved
    return places


def inside(value: float, limit: float) -> float:
    return min(max(value, 0.01), limit - 0.01)


def radii(places: list[tuple[float, float]]) -> list[float]:
    """Each circle grows to the border, or half way to its nearest neighbour; then, one by one, into what is left."""
    borders = [min(x, WIDTH - x, y, HEIGHT - y) for x, y in places]
    apart = [[math.dist(one, other) for other in places] for one in places]
    found = [min(borders[i], *(length / 2 for j, length in enumerate(apart[i]) if j != i)) for i in range(len(places))]
    for i, row in enumerate(apart):
        room = min(borders[i], *(length - found[j] for j, length in enumerate(row) if j != i))
        found[i] += GROW * (room - found[i])
    return found


# EVOLVE-BLOCK-END


def pack(n: int) -> list[list[float]]:
    places = spread(centres(n))
    return [[x, y, radius] for (x, y), radius in zip(places, radii(places), strict=True)]
