"""A queue of the places whose numbers can still become the largest."""

import sys
from collections import deque


def solve(text: str) -> str:
    _, size, *values = map(int, text.split())
    waiting: deque[int] = deque()
    found = []
    for place, value in enumerate(values):
        while waiting and values[waiting[-1]] <= value:
            waiting.pop()
        waiting.append(place)
        if waiting[0] <= place - size:
            waiting.popleft()
        if place >= size - 1:
            found.append(values[waiting[0]])
    return " ".join(map(str, found))


if __name__ == "__main__":
    print(solve(sys.stdin.read()))
