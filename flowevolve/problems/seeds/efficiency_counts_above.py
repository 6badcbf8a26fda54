"""For each number, how many before it are greater: the numbers so far stand on shelves, by their size."""

import sys

WIDTH = 15
"""How many different numbers may stand on a shelf."""
REFRESH = 20
"""After so many numbers all shelves are put in order."""


def read_values() -> list[int]:
    _, *values = map(int, sys.stdin.read().split())
    return values


def empty_shelves(values: list[int]) -> list[list[int]]:
    shelves: list[list[int]] = []
    for _ in range(max(values) // WIDTH + 1):
        shelves.append([])
    return shelves


def put_in_order(shelves: list[list[int]]) -> None:
    for shelf in shelves:
        shelf.sort()


def greater_on_shelf(shelf: list[int], value: int) -> int:
    return len([other for other in shelf if other > value])


def greater_elsewhere(shelves: list[list[int]], number: int) -> int:
    count = 0
    for other, shelf in enumerate(shelves):
        if other > number:
            count += len(shelf)
    return count


def counts(values: list[int]) -> list[int]:
    shelves = empty_shelves(values)
    found = []
    for place, value in enumerate(values):
        if place % REFRESH == 0:
            put_in_order(shelves)
        number = value // WIDTH
        found.append(greater_on_shelf(shelves[number], value) + greater_elsewhere(shelves, number))
        shelves[number].append(value)
    return found


def main() -> None:
    values = read_values()
    found = counts(values) if values else []
    print(*found)


if __name__ == "__main__":
    main()
