"""For each number, how many before it are greater: the numbers so far stand on shelves, by their size."""

import sys

LIMIT = 10000
"""All numbers are below it."""
WIDTH = 15
"""How many different numbers may stand on a shelf."""


def read_values() -> list[int]:
    words = sys.stdin.read().split()
    return [int(word) for word in words[1:]]


def empty_shelves() -> list[list[int]]:
    shelves: list[list[int]] = []
    for _ in range(LIMIT // WIDTH + 1):
        shelves.append([])
    return shelves


def greater_on_shelf(shelf: list[int], value: int) -> int:
    count = 0
    for other in shelf:
        if other > value:
            count += 1
    return count


def greater_elsewhere(shelves: list[list[int]], number: int) -> int:
    count = 0
    for other in range(number + 1, len(shelves)):
        count += len(shelves[other])
    return count


def counts(values: list[int]) -> list[int]:
    shelves = empty_shelves()
    found = []
    for value in values:
        number = value // WIDTH
        shelf = list(shelves[number])
        shelf.sort()
        found.append(greater_on_shelf(shelf, value) + greater_elsewhere(shelves, number))
        shelves[number].append(value)
    return found


def main() -> None:
    values = read_values()
    if not values:
        print()
        return
    print(" ".join(str(count) for count in counts(values)))


if __name__ == "__main__":
    main()
