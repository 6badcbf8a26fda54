"""Draws the inputs of tests for the shipped problems of efficiency. ``size`` says how large an input is."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

BELOW = 10_000
"""All numbers are below this bound."""


def orders(rng: random.Random, size: int, word: str) -> str:
    """``size`` numbers and half as many orders, of which a third set a number and the others ask for a ``word``."""
    lines = [_line(rng.randrange(BELOW) for _ in range(size))]
    for _ in range(size // 2):
        if rng.random() < 1 / 3:
            lines.append(f"set {rng.randrange(size)} {rng.randrange(BELOW)}")
        else:
            first, last = sorted(rng.sample(range(size + 1), 2))
            lines.append(f"{word} {first} {last}")
    return "\n".join([f"{size} {len(lines) - 1}", *lines])


def range_sums(rng: random.Random, size: int) -> str:
    return orders(rng, size, "sum")


def range_minimum(rng: random.Random, size: int) -> str:
    return orders(rng, size, "min")


def numbers(rng: random.Random, size: int) -> str:
    """Numbers, some of which occur twice."""
    return f"{size}\n{_line(rng.randrange(BELOW) for _ in range(size))}"


def windows(rng: random.Random, size: int) -> str:
    """A list with few different numbers, and windows of a sixth of its length."""
    return f"{size} {max(1, size // 6)}\n{_line(rng.randrange(1 + size // 8) for _ in range(size))}"


def repeats(rng: random.Random, size: int) -> str:
    """Numbers that recur after a while, so that stretches without a repeat are some tens of numbers long."""
    kinds = 1 + size // 4
    return f"{size}\n{_line(rng.randrange(kinds) for _ in range(size))}"


def spans(rng: random.Random, size: int) -> str:
    """Spans, about half of which touch another."""
    starts = [rng.randrange(40 * size) for _ in range(size)]
    return _lines(f"{size}", ((start, start + rng.randint(1, 40)) for start in starts))


def roads(rng: random.Random, size: int) -> str:
    """A chain through a tenth of the towns in descending order of their numbers, and random roads."""
    chain = range(size // 10)
    pairs = [(place + 1, place) for place in reversed(chain)]
    pairs += [(rng.randrange(size), rng.randrange(size)) for _ in range(size // 2)]
    return _lines(f"{size} {len(pairs)}", pairs)


def lengths(rng: random.Random, size: int) -> str:
    """One-way roads, three from each town on average, with a chain through a tenth of the towns."""
    triples = [(place + 1, place, 1) for place in range(size // 10)]
    triples += [(rng.randrange(size), rng.randrange(size), rng.randint(1, 999)) for _ in range(3 * size)]
    rng.shuffle(triples)
    return _lines(f"{size} {len(triples)} {rng.randrange(size)}", triples)


def _line(values: Iterable[int]) -> str:
    return " ".join(map(str, values))


def _lines(first: str, rows: Iterable[Sequence[int]]) -> str:
    return "\n".join([first, *map(_line, rows)])
