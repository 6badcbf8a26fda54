"""The largest number in each window of a list: every window is searched."""

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


def windows_of(values: list[int], size: int) -> list[list[int]]:
    windows = []
    for start in range(len(values) - size + 1):
        window = values[start : start + size]
        for _ in range(CHECKS):
            check(window)
        windows.append(window)
    return windows


def largest(window: list[int]) -> int:
    best = window[0]
    for value in window:
        if value > best:
            best = value
    return best


def answers(values: list[int], size: int) -> list[int]:
    found = []
    ordered = []
    for window in windows_of(values, size):
        ordered.append(sorted(window))
        check(window)
        found.append(largest(window))
    return found


def main() -> None:
    size, values = read_input()
    found = answers(values, size)
    print(*found)


if __name__ == "__main__":
    main()
