"""The largest number in each window of a list: every window is searched."""

import sys


def read_input() -> tuple[int, list[int]]:
    words = sys.stdin.read().split()
    return int(words[1]), [int(word) for word in words[2:]]


def check(window: list[int]) -> None:
    for value in window:
        if value < 0:
            raise ValueError("numbers are 0 or more")


def windows_of(values: list[int], size: int) -> list[list[int]]:
    windows = []
    for start in range(len(values) - size + 1):
        window = values[start : start + size]
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
    for window in windows_of(values, size):
        check(window)
        window = list(window)
        window.sort()
        found.append(largest(window))
    return found


def main() -> None:
    size, values = read_input()
    if size > len(values):
        print()
        return
    print(" ".join(str(value) for value in answers(values, size)))


if __name__ == "__main__":
    main()
