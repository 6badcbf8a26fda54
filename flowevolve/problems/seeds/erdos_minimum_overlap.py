"""A hill around the middle, with steps down to both sides."""

# EVOLVE-BLOCK-START
STEPS = 60
HIGH = 0.6
"""The height of the hill; the rest follows, as the mean is 1/2."""
WIDTH = 0.6
"""The share of the interval that the hill takes."""


def height(x: float) -> float:
    """At x from 0 to 1."""
    return HIGH if abs(x - 0.5) < WIDTH / 2 else (0.5 - HIGH * WIDTH) / (1 - WIDTH)


# EVOLVE-BLOCK-END


def heights() -> list[float]:
    return [height((k + 0.5) / STEPS) for k in range(STEPS)]
