"""In the order of their starts, each span touches the last one or none."""

import sys


def solve(text: str) -> str:
    numbers = iter(list(map(int, text.split()))[1:])
    groups = length = 0
    reached = -1
    for start, end in sorted(zip(numbers, numbers, strict=True)):
        if start > reached:
            groups += 1
            length += end - start
            reached = end
        elif end > reached:
            length += end - reached
            reached = end
    return f"{groups} {length}"


if __name__ == "__main__":
    print(solve(sys.stdin.read()))
