"""The nearest town next, from a heap."""

import sys
from heapq import heappop, heappush


def solve(text: str) -> str:
    towns, _, start, *numbers = map(int, text.split())
    roads: list[list[tuple[int, int]]] = [[] for _ in range(towns)]
    parts = iter(numbers)
    for one, other, length in zip(parts, parts, parts, strict=True):
        roads[one].append((other, length))
    lengths = [-1] * towns
    waiting = [(0, start)]
    while waiting:
        way, town = heappop(waiting)
        if lengths[town] >= 0:
            continue
        lengths[town] = way
        for other, length in roads[town]:
            if lengths[other] < 0:
                heappush(waiting, (way + length, other))
    return " ".join(map(str, lengths))


if __name__ == "__main__":
    print(solve(sys.stdin.read()))
