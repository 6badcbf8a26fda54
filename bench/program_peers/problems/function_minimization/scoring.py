"""Write `minimize(function, low, high)`, which returns a point (x, y) where the function is as low as possible.

Both coordinates lie between low and high. The function has many valleys, and may be called 1000 times. The score is 1
where the point found is the lowest, and falls to 0 as the value found there rises; higher is better. It is the mean of
eight searches.
"""

import math
import random

ENTRY = "minimize"
SIGNATURE = "def minimize(function, low: float, high: float) -> tuple[float, float]:"
LOW, HIGH = -5.0, 5.0
LOWEST = -1.5187
"""The least value, near (-1.70, 0.68)."""
SEARCHES, CALLS = 8, 1000


def function(x, y):
    return math.sin(x) * math.cos(y) + math.sin(x * y) + (x * x + y * y) / 20.0


def score(minimize):
    total = 0.0
    for search in range(SEARCHES):
        calls = []

        def counted(x, y, calls=calls):
            calls.append(None)
            if len(calls) > CALLS:
                raise ValueError(f"the function was called more than {CALLS} times")
            return function(x, y)

        random.seed(search)
        x, y = map(float, minimize(counted, LOW, HIGH))
        if not (LOW <= x <= HIGH and LOW <= y <= HIGH):
            raise ValueError("the point lies outside of the bounds")
        total += 1.0 / (1.0 + 10.0 * max(0.0, function(x, y) - LOWEST))
    return total / SEARCHES
