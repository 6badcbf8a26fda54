"""Smallest numbers in parts of a list that changes: the smallest of each block is kept beside the numbers."""

import sys

BLOCK = 300
"""How many numbers are in a block."""
REFRESH = 4
"""After so many orders the smallest of all blocks are looked for anew."""

Order = tuple[str, int, int]


def read_input() -> tuple[list[int], list[Order]]:
    words = iter(sys.stdin.read().split())
    count, _ = int(next(words)), next(words)
    values = [int(next(words)) for _ in range(count)]
    return values, [(word, int(next(words)), int(next(words))) for word in words]


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
    while first < last:
        if first % BLOCK == 0 and first + BLOCK <= last:
            least = min(least, minima[first // BLOCK])
            first += BLOCK
        else:
            least = min(least, values[first])
            first += 1
    return least


def change(values: list[int], minima: list[int], place: int, value: int) -> None:
    values[place] = value
    start = place // BLOCK * BLOCK
    minima[place // BLOCK] = smallest(values[start : start + BLOCK])


def answers(values: list[int], orders: list[Order]) -> list[int]:
    minima = block_minima(values)
    found = []
    for number, (order, one, other) in enumerate(orders):
        if number % REFRESH == 0:
            minima = block_minima(values)
        if order == "set":
            change(values, minima, one, other)
        else:
            found.append(part_minimum(values, minima, one, other))
    return found


def main() -> None:
    values, orders = read_input()
    for answer in answers(values, orders):
        print(answer)


if __name__ == "__main__":
    main()
