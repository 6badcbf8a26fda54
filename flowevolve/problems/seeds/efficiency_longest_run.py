"""The longest part of a list without a number twice: one is begun at every place."""

import sys

CHECKS = 3
"""How often each part is looked over."""


def read_values() -> list[int]:
    _, *values = map(int, sys.stdin.read().split())
    return values


def check(part: list[int]) -> None:
    for value in part:
        if part.count(value) > 1:
            raise ValueError("no number may be there twice")


def run_from(values: list[int], start: int) -> list[int]:
    """What follows without a number twice when it begins here."""
    seen: list[int] = []
    for value in values[start:]:
        if value in seen:
            break
        seen = list(seen)
        seen.sort()
        seen.append(value)
    return seen


def longest(values: list[int]) -> tuple[int, int]:
    """Its length, and the first place where one begins."""
    best, where = 0, 0
    parts = []
    for start, _ in enumerate(values):
        part = run_from(values, start)
        parts.append(part)
        for _ in range(CHECKS):
            check(part)
        if len(part) > best:
            best, where = len(part), start
    return best, where


def main() -> None:
    values = read_values()
    length, where = longest(values)
    print(length, where)


if __name__ == "__main__":
    main()
