"""A function that may fall or rise from one end to the other."""

# EVOLVE-BLOCK-START
STEPS = 60
START = 0.05
"""Where the left end is, so that the right end is 1 beyond."""
POWER = 0.0
"""Of the place, that the height is."""


def height(x: float) -> float:
    """At x from 0 to 1."""
    return float((START + x) ** POWER)


# EVOLVE-BLOCK-END


def heights() -> list[float]:
    return [max(0.0, height((k + 0.5) / STEPS)) for k in range(STEPS)]
