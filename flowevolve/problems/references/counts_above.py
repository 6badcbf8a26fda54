"""The numbers so far in order."""

import sys
from bisect import bisect_right


def solve(text: str) -> str:
    ordered: list[int] = []
    found = []
    for value in map(int, text.split()[1:]):
        place = bisect_right(ordered, value)
        found.append(len(ordered) - place)
        ordered.insert(place, value)
    return " ".join(map(str, found))


if __name__ == "__main__":
    print(solve(sys.stdin.read()))
