"""Smallest numbers in parts of a list that changes: the smallest of each block is kept beside the numbers."""

import sys

BLOCK = 500
"""How many numbers are in a block."""


def read_words() -> list[str]:
    return sys.stdin.read().split()


def read_values(words: list[str]) -> list[int]:
    return [int(word) for word in words[2 : 2 + int(words[0])]]


def read_orders(words: list[str]) -> list[tuple[str, int, int]]:
    start = 2 + int(words[0])
    return [(words[i], int(words[i + 1]), int(words[i + 2])) for i in range(start, len(words), 3)]


def smallest(values: list[int]) -> int:
    least = values[0]
    for value in values:
        if value < least:
            least = value
    return least


def block_minima(values: list[int]) -> list[int]:
    return [smallest(values[start : start + BLOCK]) for start in range(0, len(values), BLOCK)]


def part_minimum(values: list[int], minima: list[int], first: int, last: int) -> int:
    """Of the numbers from place ``first`` on, up to but without ``last``."""
    least = values[first]
    place = first
    while place < last:
        if place % BLOCK == 0 and place + BLOCK <= last:
            least = min(least, minima[place // BLOCK])
            place += BLOCK
        else:
            least = min(least, values[place])
            place += 1
    return least


def change(values: list[int], minima: list[int], place: int, value: int) -> None:
    values[place] = value
    start = place // BLOCK * BLOCK
    minima[place // BLOCK] = smallest(values[start : start + BLOCK])


def answers(values: list[int], orders: list[tuple[str, int, int]]) -> list[int]:
    minima = block_minima(values)
    found = []
    for order, one, other in orders:
        if order == "set":
            minima = block_minima(list(values))
            change(values, minima, one, other)
        else:
            found.append(part_minimum(values, minima, one, other))
    return found


def main() -> None:
    words = read_words()
    found = answers(read_values(words), read_orders(words))
    for each in found:
        print(each)


if __name__ == "__main__":
    main()
