"""How many different numbers are in each window of a list: every window is counted."""

import sys

CHECKS = 3
"""How often each window is looked over."""


def read_input() -> tuple[int, list[int]]:
    _, size, *values = map(int, sys.stdin.read().split())
    return size, values


def check(window: list[int]) -> None:
    for value in window:
        if value < 0:
            raise ValueError("numbers are 0 or more")


def tally(window: list[int]) -> dict[int, int]:
    """How often each number is there."""
    counts = dict.fromkeys(window, 0)
    for value in window:
        counts[value] += 1
    return counts


def different(window: list[int]) -> int:
    window = list(window)
    window.sort()
    for _ in range(CHECKS):
        check(window)
    return len(tally(window))


def answers(values: list[int], size: int) -> list[int]:
    found = []
    windows = []
    for start in range(len(values) - size + 1):
        window = values[start : start + size]
        windows.append(window)
        window.sort()
        found.append(different(window))
    return found


def main() -> None:
    size, values = read_input()
    found = answers(values, size)
    print(*found)


if __name__ == "__main__":
    main()
