"""Sums of parts of a list that changes: beside the numbers there is a total for each block of them."""

import sys

BLOCK = 6
"""How many numbers share a total."""
REFRESH = 25
"""After so many orders all totals are added up anew."""

Order = tuple[str, int, int]


def read_input() -> tuple[list[int], list[Order]]:
    words = iter(sys.stdin.read().split())
    count, _ = int(next(words)), next(words)
    values = [int(next(words)) for _ in range(count)]
    return values, [(word, int(next(words)), int(next(words))) for word in words]


def block_totals(values: list[int]) -> list[int]:
    totals = []
    total = 0
    for place, value in enumerate(values):
        if place % BLOCK == 0:
            totals.append(total)
            total = 0
        total += value
    return [*totals, total][1:]


def part_sum(values: list[int], totals: list[int], first: int, last: int) -> int:
    """Of the numbers from place ``first`` on, up to but without ``last``."""
    total = 0
    while first < last:
        if first % BLOCK == 0 and first + BLOCK <= last:
            total += totals[first // BLOCK]
            first += BLOCK
        else:
            total += values[first]
            first += 1
    return total


def change(values: list[int], totals: list[int], place: int, value: int) -> None:
    totals[place // BLOCK] += value - values[place]
    values[place] = value


def answers(values: list[int], orders: list[Order]) -> list[int]:
    totals = block_totals(values)
    found = []
    for number, (order, one, other) in enumerate(orders):
        if number % REFRESH == 0:
            totals = block_totals(values)
        if order == "set":
            change(values, totals, one, other)
        else:
            found.append(part_sum(values, totals, one, other))
    return found


def main() -> None:
    values, orders = read_input()
    for answer in answers(values, orders):
        print(answer)


if __name__ == "__main__":
    main()
