"""The longest part of a list without a number twice: one is begun at every place."""

import sys


def read_values() -> list[int]:
    words = sys.stdin.read().split()
    return [int(word) for word in words[1:]]


def has_twice(part: list[int]) -> bool:
    for value in part:
        if part.count(value) > 1:
            return True
    return False


def run_from(values: list[int], start: int) -> int:
    """How long it gets when it begins here."""
    seen: list[int] = []
    place = start
    while place < len(values):
        if values[place] in seen:
            break
        seen.append(values[place])
        seen = list(seen)
        place += 1
    return place - start


def longest(values: list[int]) -> tuple[int, int]:
    """Its length, and the first place where one begins."""
    best, where = 0, 0
    for start in range(len(values)):
        length = run_from(values, start)
        if has_twice(values[start : start + length]):
            length = 0
        if length > best:
            best, where = length, start
    return best, where


def main() -> None:
    values = read_values()
    if not values:
        print(0, 0)
        return
    length, where = longest(values)
    print(length, where)


if __name__ == "__main__":
    main()
