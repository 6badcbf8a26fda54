"""Hexagons in rows, far enough apart for any turn."""

import math

# EVOLVE-BLOCK-START
ROWS = [4, 4, 4]
"""How many hexagons lie in each row, from below; what is left over makes further rows of 4."""
ACROSS = 2.0
UPWARD = 2.0
SHIFT = 0.0
"""Of every other row, to the right."""
TURN = 0.0
"""Of each hexagon, in degrees."""


def middles(n: int) -> list[tuple[float, float]]:
    """Places row by row, each row in the middle of the page."""
    lengths = list(ROWS)
    while sum(lengths) < n:
        lengths.append(4)
    places = []
    for row, length in enumerate(lengths):
        for column in range(length):
            x = (column - (length - 1) / 2) * ACROSS + SHIFT * (row % 2)
            y = (row - (len(lengths) - 1) / 2) * UPWARD
            places.append((x, y))
    return places[:n]


# EVOLVE-BLOCK-END


def around_zero(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Moved so that they reach equally far to the left and right, and up and down."""
    x = (min(place[0] for place in places) + max(place[0] for place in places)) / 2
    y = (min(place[1] for place in places) + max(place[1] for place in places)) / 2
    return [(place[0] - x, place[1] - y) for place in places]


def arrange(n: int) -> list[list[float]]:
    return [[x, y, math.fmod(TURN, 60)] for x, y in around_zero(middles(n))]
