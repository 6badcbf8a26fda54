"""Write `smooth(samples)`, which takes the noise out of a list of numbers and returns a list of the same length.

The samples are sums of two sines with noise. The score is 1 where the signal without its noise comes back, and falls to
0 with the mean square of what differs; higher is better. It is the mean over six signals.
"""

import math
import random

ENTRY = "smooth"
SIGNATURE = "def smooth(samples: list[float]) -> list[float]:"
SIGNALS, LENGTH, NOISE = 6, 200, 0.35


def score(smooth):
    total = 0.0
    for number in range(SIGNALS):
        rng = random.Random(number)
        slow, fast = rng.uniform(0.02, 0.05), rng.uniform(0.08, 0.16)
        clean = [math.sin(slow * place) + 0.5 * math.sin(fast * place) for place in range(LENGTH)]
        made = [float(each) for each in smooth([value + rng.gauss(0.0, NOISE) for value in clean])]
        if len(made) != LENGTH:
            raise ValueError(f"{len(made)} samples came back instead of {LENGTH}")
        error = sum((one - other) ** 2 for one, other in zip(made, clean, strict=True)) / LENGTH
        if not math.isfinite(error):
            raise ValueError("a sample is not a finite number")
        total += 1.0 / (1.0 + 20.0 * error)
    return total / SIGNALS
