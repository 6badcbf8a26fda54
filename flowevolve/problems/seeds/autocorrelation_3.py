"""A constant, with a dip of which the height may be below 0."""

# EVOLVE-BLOCK-START
STEPS = 60
DIP = 0.0
"""By how much the function is lower than 1 in the dip."""
FROM, TO = 0.6, 0.7
"""Where the dip is, from 0 to 1."""


def height(x: float) -> float:
    """At x from 0 to 1."""
    return 1 - DIP if FROM <= x < TO else 1.0


# EVOLVE-BLOCK-END


def heights() -> list[float]:
    return [height((k + 0.5) / STEPS) for k in range(STEPS)]
