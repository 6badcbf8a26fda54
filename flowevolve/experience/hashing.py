"""Embeddings by feature hashing, without a model: texts that share words have vectors that are close.

Weinberger, Dasgupta, Langford, Smola and Attenberg, "Feature Hashing for Large Scale Multitask Learning", ICML 2009:
every word, and every pair of neighbouring words, is hashed to one of the dimensions and to a sign; the vector is the
sum, scaled to length 1. It knows nothing of meaning: synonyms are as far apart as any two words.
"""

from __future__ import annotations

import math
import re
from hashlib import blake2b
from itertools import pairwise

DIMENSIONS = 256

_WORD = re.compile(r"\w+")


def hashed_embedding(text: str) -> tuple[float, ...]:
    """A vector of `DIMENSIONS` numbers and length 1; the first unit vector for a text without words."""
    words = _WORD.findall(text.lower())
    vector = [0.0] * DIMENSIONS
    for feature in [*words, *(f"{first} {second}" for first, second in pairwise(words))]:
        digest = int.from_bytes(blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        vector[(digest >> 1) % DIMENSIONS] += 1.0 if digest & 1 else -1.0
    length = math.hypot(*vector)
    return tuple(value / length for value in vector) if length else (1.0, *[0.0] * (DIMENSIONS - 1))
