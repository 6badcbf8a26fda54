"""Which texts say nearly the same, judged by their embeddings. This keeps playbooks and memories free of repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import Literal

Vector = Sequence[float]
_ROUNDING = 1e-6
"""Two ways to compute a cosine differ by less than this."""
Relation = Literal["duplicate", "between", "unlike"]


def cosine(first: Vector, second: Vector) -> float:
    """The cosine of two vectors, from -1 to 1; 0 if one of them has length 0."""
    length = math.hypot(*first) * math.hypot(*second)
    return sum(map(mul, first, second)) / length if length else 0.0


def near_groups(vectors: Sequence[Vector], threshold: float) -> list[list[int]]:
    """Groups of two or more positions whose vectors have at least this cosine with the first of the group.

    Groups are formed greedily, as in ACE's grow-and-refine: the first free position starts a group, and all free
    positions near it join. Vectors of different dimensions come from different embedders, and are never near. Because
    the number of pairs is quadratic, numpy finds the pairs that may be near, and `cosine` decides.
    """
    places: dict[int, list[int]] = {}
    for place, vector in enumerate(vectors):
        places.setdefault(len(vector), []).append(place)
    return sorted(
        [each[place] for place in group]
        for each in places.values()
        for group in _near_groups([vectors[place] for place in each], threshold)
    )


def _near_groups(vectors: Sequence[Vector], threshold: float) -> list[list[int]]:
    import numpy as np  # noqa: PLC0415 - slow to load, and not needed before there is something to compare

    lengths = [math.hypot(*vector) or 1.0 for vector in vectors]
    units = np.array(vectors, dtype=np.float64) / np.array(lengths)[:, np.newaxis]
    free = np.ones(len(vectors), dtype=np.bool_)
    groups: list[list[int]] = []
    for first in range(len(vectors)):
        if not free[first]:
            continue
        free[first] = False
        maybe = np.flatnonzero(free & (units @ units[first] >= threshold - _ROUNDING)).tolist()
        near = [other for other in maybe if cosine(vectors[first], vectors[other]) >= threshold]
        if near:
            free[near] = False
            groups.append([first, *near])
    return groups


@dataclass(frozen=True, slots=True)
class Likeness:
    """Says how a new text relates to the existing ones."""

    duplicate: float = 0.90
    """From this cosine on, two texts say the same."""
    unlike: float = 0.60
    """Below this cosine, they are about different things."""

    def relation(self, vector: Vector, others: Sequence[Vector]) -> tuple[Relation, int | None]:
        """The relation to the nearest of the others, and its position; ``unlike`` and None if there are no others."""
        if not others:
            return "unlike", None
        similar = [cosine(vector, other) for other in others]
        nearest = max(range(len(others)), key=similar.__getitem__)
        if similar[nearest] >= self.duplicate:
            return "duplicate", nearest
        return ("unlike" if similar[nearest] < self.unlike else "between"), nearest
