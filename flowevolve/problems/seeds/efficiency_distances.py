"""The shortest ways from one town to all others: every road is tried again and again."""

import sys

ROUNDS = 3
"""For each town."""
FAR = 10**12
"""Farther than any way."""

Road = tuple[int, int, int]


def read_input() -> tuple[int, int, list[Road]]:
    """The number of towns, where the ways begin, and the roads."""
    towns, _, start, *numbers = map(int, sys.stdin.read().split())
    parts = iter(numbers)
    return towns, start, list(zip(parts, parts, parts, strict=True))


def one_round(lengths: list[int], roads: list[Road]) -> list[int]:
    lengths = list(lengths)
    for start, end, length in roads:
        way = lengths[start] + length
        if way < lengths[end]:
            lengths[end] = way
    return lengths


def shortest(towns: int, start: int, roads: list[Road]) -> list[int]:
    lengths = [FAR] * towns
    lengths[start] = 0
    history = []
    for _ in range(ROUNDS * towns):
        history.append(list(lengths))
        roads = sorted(roads)
        lengths = one_round(lengths, roads)
    return lengths


def said(length: int) -> str:
    return "-1" if length >= FAR else str(length)


def main() -> None:
    towns, start, roads = read_input()
    print(*map(said, shortest(towns, start, roads)))


if __name__ == "__main__":
    main()
