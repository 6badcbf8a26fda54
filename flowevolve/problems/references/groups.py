"""Union and find, with paths that get shorter."""

import sys


def solve(text: str) -> str:
    towns, _, *numbers = map(int, text.split())
    above = list(range(towns))

    def top(town: int) -> int:
        while above[town] != town:
            above[town] = above[above[town]]
            town = above[town]
        return town

    ends = iter(numbers)
    for one, other in zip(ends, ends, strict=True):
        above[top(one)] = top(other)
    sizes = [0] * towns
    for town in range(towns):
        sizes[top(town)] += 1
    return f"{towns - sizes.count(0)} {max(sizes, default=0)}"


if __name__ == "__main__":
    print(solve(sys.stdin.read()))
