"""A function that is higher at its ends than in the middle, or the other way round."""

# EVOLVE-BLOCK-START
STEPS = 60
MIDDLE = 1.0
"""The height in the middle; it is 1 at the ends."""
POWER = 2.0
"""How late the height changes on the way from the middle to the ends."""


def height(x: float) -> float:
    """At x from -1 to 1."""
    return MIDDLE + (1 - MIDDLE) * float(abs(x) ** POWER)


# EVOLVE-BLOCK-END


def heights() -> list[float]:
    places = [(2 * k + 1) / STEPS - 1 for k in range(STEPS)]
    return [max(0.0, height(x)) for x in places]
