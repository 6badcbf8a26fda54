"""How many different numbers are in each window of a list: every window is counted."""

import sys


def read_input() -> tuple[int, list[int]]:
    words = sys.stdin.read().split()
    return int(words[1]), [int(word) for word in words[2:]]


def check(window: list[int]) -> None:
    for value in window:
        if value < 0:
            raise ValueError("numbers are 0 or more")


def tally(window: list[int]) -> dict[int, int]:
    """How often each number is there."""
    counts: dict[int, int] = {}
    for value in window:
        if value in counts:
            counts[value] += 1
        else:
            counts[value] = 1
    return counts


def different(window: list[int]) -> int:
    window = list(window)
    window.sort()
    check(window)
    return len(tally(window))


def answers(values: list[int], size: int) -> list[int]:
    found = []
    windows = []
    for start in range(len(values) - size + 1):
        window = values[start : start + size]
        windows.append(window)
        check(window)
        found.append(different(window))
    return found


def main() -> None:
    size, values = read_input()
    if size > len(values):
        print()
        return
    print(" ".join(str(count) for count in answers(values, size)))


if __name__ == "__main__":
    main()
