"""Circles in the unit square."""

# EVOLVE-BLOCK-START
import math


def pack():
    """26 circles as (x, y, radius): rows of centres, each circle as large as its neighbours allow."""
    centres = []
    rows = [5, 5, 5, 5, 6]
    shift = 0.3
    margin = 0.08
    for number, count in enumerate(rows):
        y = margin + (1.0 - 2.0 * margin) * number / (len(rows) - 1)
        for place in range(count):
            x = (place + shift + 0.2 * (number % 2)) / count
            centres.append((min(max(x, 0.01), 0.99), min(max(y, 0.01), 0.99)))
    return grow(centres, 0.97)


def grow(centres, share):
    """Give each circle half the distance to the nearest centre, or the distance to the nearest wall."""
    circles = []
    for index, (x, y) in enumerate(centres):
        radius = min(x, y, 1.0 - x, 1.0 - y)
        for other, (u, v) in enumerate(centres):
            if other != index:
                radius = min(radius, math.hypot(x - u, y - v) / 2.0)
        circles.append((x, y, share * radius))
    return circles


# EVOLVE-BLOCK-END
