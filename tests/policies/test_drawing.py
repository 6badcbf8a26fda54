"""Drawing by rank and evenly, against exact counts over a grid of random numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from random import Random
from typing import Self

import pytest
from hypothesis import given, strategies as st

from flowevolve.policies.drawing import by_rank, draw, evenly


class Given(Random):
    """Gives out these numbers, one after another."""

    def __new__(cls, numbers: Sequence[float]) -> Self:
        return super().__new__(cls)

    def __init__(self, numbers: Sequence[float]) -> None:
        super().__init__(0)
        self._numbers = iter(numbers)

    def random(self) -> float:
        return next(self._numbers)


def grid(*sizes: int) -> Iterator[tuple[float, ...]]:
    """The midpoints of a grid of the unit cube."""
    return product(*([(place + 0.5) / size for place in range(size)] for size in sizes))


def test_by_rank_the_first_is_drawn_twice_as_often_as_the_second() -> None:
    assert by_rank(3) == [1, 1 / 2, 1 / 3]
    counts = Counter(draw("abc", by_rank(3), 1, Given(numbers))[0] for numbers in grid(11))
    assert counts == {"a": 6, "b": 3, "c": 2}


def test_evenly_all_are_drawn_as_often() -> None:
    counts = Counter(draw("abcd", evenly(4), 1, Given(numbers))[0] for numbers in grid(12))
    assert counts == {"a": 3, "b": 3, "c": 3, "d": 3}


def test_what_is_left_after_the_first_keeps_its_weights() -> None:
    counts = Counter("".join(draw("abc", by_rank(3), 2, Given(numbers))) for numbers in grid(11, 60))
    weights = dict(zip("abc", by_rank(3), strict=True))
    total = sum(weights.values())
    for first, second in permutations("abc", 2):
        expected = weights[first] / total * weights[second] / (total - weights[first])
        assert counts[first + second] == pytest.approx(660 * expected)


@given(st.integers(0, 8), st.integers(0, 10), st.randoms())
def test_none_is_drawn_twice(size: int, count: int, random: Random) -> None:
    drawn = draw(range(size), by_rank(size), count, random)
    assert len(drawn) == len(set(drawn)) == min(size, count)
