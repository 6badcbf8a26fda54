"""The shortest ways from one town to all others: every road is tried again and again."""

import sys

FAR = 10**12
"""Farther than any way."""
Road = tuple[int, int, int]


def read_input() -> tuple[int, int, list[Road]]:
    """The number of towns, where the ways begin, and the roads."""
    words = sys.stdin.read().split()
    numbers = [int(word) for word in words[3:]]
    roads = [(numbers[i], numbers[i + 1], numbers[i + 2]) for i in range(0, len(numbers), 3)]
    return int(words[0]), int(words[2]), roads


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
    rounds = []
    for _ in range(towns):
        rounds.append(list(lengths))
        roads = sorted(roads)
        lengths = one_round(lengths, roads)
    return lengths


def said(length: int) -> str:
    return "-1" if length >= FAR else str(length)


def main() -> None:
    towns, start, roads = read_input()
    lengths = shortest(towns, start, roads)
    print(" ".join(said(length) for length in lengths))


if __name__ == "__main__":
    main()
