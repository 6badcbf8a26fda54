"""Write `pack()`, which returns 26 circles in the unit square as a list of (x, y, radius).

No two circles may overlap, and none may leave the square. The score is the sum of the radii; higher is better.
"""

import math

ENTRY = "pack"
SIGNATURE = "def pack() -> list[tuple[float, float, float]]:"
CIRCLES = 26
SLACK = 1e-9


def score(pack):
    circles = [tuple(map(float, each)) for each in pack()]
    if len(circles) != CIRCLES:
        raise ValueError(f"{len(circles)} circles instead of {CIRCLES}")
    for index, (x, y, radius) in enumerate(circles):
        if not (radius >= 0.0 and radius - SLACK <= min(x, y, 1.0 - x, 1.0 - y)):
            raise ValueError(f"circle {index} leaves the square")
        for other, (u, v, beside) in enumerate(circles[:index]):
            if math.hypot(x - u, y - v) < radius + beside - SLACK:
                raise ValueError(f"circles {other} and {index} overlap")
    return sum(radius for _, _, radius in circles)
