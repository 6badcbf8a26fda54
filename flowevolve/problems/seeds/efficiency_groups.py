"""Groups of towns that roads join: every town takes over the smallest number of those it is joined to."""

import sys

ROUNDS = 3
"""For each town."""

Road = tuple[int, int]


def read_input() -> tuple[int, list[Road]]:
    towns, _, *numbers = map(int, sys.stdin.read().split())
    ends = iter(numbers)
    return towns, list(zip(ends, ends, strict=True))


def one_round(labels: list[int], roads: list[Road]) -> list[int]:
    labels = list(labels)
    for one, other in roads:
        least = min(labels[one], labels[other])
        labels[one] = least
        labels[other] = least
    return labels


def label(towns: int, roads: list[Road]) -> list[int]:
    labels = list(range(towns))
    history = []
    for _ in range(ROUNDS * towns):
        history.append(list(labels))
        roads = sorted(roads)
        labels = one_round(labels, roads)
    return labels


def sizes(labels: list[int]) -> list[int]:
    return [labels.count(number) for number in set(labels)]


def main() -> None:
    towns, roads = read_input()
    found = sizes(label(towns, roads))
    print(len(found), max(found, default=0))


if __name__ == "__main__":
    main()
