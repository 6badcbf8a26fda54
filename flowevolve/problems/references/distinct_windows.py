"""Counts that a number enters and one leaves."""

import sys


def solve(text: str) -> str:
    _, size, *values = map(int, text.split())
    counts: dict[int, int] = {}
    found = []
    for place, value in enumerate(values):
        counts[value] = counts.get(value, 0) + 1
        if place >= size:
            leaves = values[place - size]
            if counts[leaves] == 1:
                del counts[leaves]
            else:
                counts[leaves] -= 1
        if place >= size - 1:
            found.append(len(counts))
    return " ".join(map(str, found))


if __name__ == "__main__":
    print(solve(sys.stdin.read()))
