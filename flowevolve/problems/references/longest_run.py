"""A window whose start jumps behind a number's last place."""

import sys


def solve(text: str) -> str:
    last: dict[int, int] = {}
    start = best = where = 0
    for place, value in enumerate(map(int, text.split()[1:])):
        if last.get(value, -1) >= start:
            start = last[value] + 1
        last[value] = place
        if place + 1 - start > best:
            best, where = place + 1 - start, start
    return f"{best} {where}"


if __name__ == "__main__":
    print(solve(sys.stdin.read()))
