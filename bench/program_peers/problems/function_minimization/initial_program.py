"""A search for the lowest point of a function with many valleys."""

# EVOLVE-BLOCK-START
import random


def minimize(function, low, high):
    """Draw points anywhere between the bounds, and return the best."""
    best = (random.uniform(low, high), random.uniform(low, high))
    value = function(*best)
    for _ in range(60):
        reach = 0.5 * (high - low) * 1.0
        x = best[0] * 0.1 + random.uniform(-reach, reach)
        y = best[1] * 0.1 + random.uniform(-reach, reach)
        found = function(x, y)
        if found < value:
            best, value = (x, y), found
    return best


# EVOLVE-BLOCK-END
