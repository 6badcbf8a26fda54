"""Groups of towns that roads join: every town takes over the smallest number of those it is joined to."""

import sys

Road = tuple[int, int]


def read_input() -> tuple[int, list[Road]]:
    words = sys.stdin.read().split()
    numbers = [int(word) for word in words[2:]]
    return int(words[0]), [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)]


def one_round(labels: list[int], roads: list[Road]) -> list[int]:
    labels = list(labels)
    for one, other in roads:
        least = min(labels[one], labels[other])
        labels[one] = least
        labels[other] = least
    return labels


def label(towns: int, roads: list[Road]) -> list[int]:
    labels = list(range(towns))
    rounds = []
    for _ in range(towns):
        rounds.append(list(labels))
        labels = one_round(labels, roads)
    return labels


def sizes(labels: list[int]) -> list[int]:
    return [labels.count(number) for number in sorted(set(labels))]


def main() -> None:
    towns, roads = read_input()
    if towns == 0:
        print(0, 0)
        return
    found = sizes(label(towns, roads))
    print(len(found), max(found))


if __name__ == "__main__":
    main()
