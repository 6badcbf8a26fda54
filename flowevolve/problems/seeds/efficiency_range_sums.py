"""Sums of parts of a list that changes: beside the numbers there is a total for each block of them."""

import sys

BLOCK = 6
"""How many numbers share a total."""
REFRESH = 40
"""After so many changes all totals are added up anew."""


def read_words() -> list[str]:
    return sys.stdin.read().split()


def read_values(words: list[str]) -> list[int]:
    return [int(word) for word in words[2 : 2 + int(words[0])]]


def read_orders(words: list[str]) -> list[tuple[str, int, int]]:
    start = 2 + int(words[0])
    return [(words[i], int(words[i + 1]), int(words[i + 2])) for i in range(start, len(words), 3)]


def block_totals(values: list[int]) -> list[int]:
    totals = []
    for start in range(0, len(values), BLOCK):
        total = 0
        for value in values[start : start + BLOCK]:
            total += value
        totals.append(total)
    return totals


def part_sum(values: list[int], totals: list[int], first: int, last: int) -> int:
    """Of the numbers from place ``first`` on, up to but without ``last``."""
    total = 0
    place = first
    while place < last:
        if place % BLOCK == 0 and place + BLOCK <= last:
            total += totals[place // BLOCK]
            place += BLOCK
        else:
            total += values[place]
            place += 1
    return total


def change(values: list[int], totals: list[int], place: int, value: int) -> None:
    totals[place // BLOCK] += value - values[place]
    values[place] = value


def answers(values: list[int], orders: list[tuple[str, int, int]]) -> list[int]:
    totals = block_totals(values)
    found = []
    changes = 0
    for order, one, other in orders:
        if changes % REFRESH == 0:
            totals = block_totals(values)
        if order == "set":
            change(values, totals, one, other)
            changes += 1
        elif one >= other:
            found.append(0)
        else:
            found.append(part_sum(values, totals, one, other))
    return found


def main() -> None:
    words = read_words()
    found = answers(read_values(words), read_orders(words))
    for each in found:
        print(each)


if __name__ == "__main__":
    main()
