"""Spans that touch become one, round after round."""

import sys

Span = tuple[int, int]


def read_spans() -> list[Span]:
    words = sys.stdin.read().split()
    numbers = [int(word) for word in words[1:]]
    return [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)]


def touch(one: Span, other: Span) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def one_round(spans: list[Span]) -> list[Span]:
    """Each span becomes part of the first one before it that it touches."""
    merged: list[Span] = []
    for span in spans:
        for place, other in enumerate(merged):
            if touch(span, other):
                merged[place] = (min(span[0], other[0]), max(span[1], other[1]))
                break
        else:
            merged.append(span)
    return merged


def merged_spans(spans: list[Span]) -> list[Span]:
    rounds = []
    for _ in range(len(spans)):
        rounds.append(list(spans))
        spans = sorted(spans)
        spans = one_round(spans)
    return spans


def main() -> None:
    spans = read_spans()
    if not spans:
        print(0, 0)
        return
    merged = merged_spans(spans)
    length = 0
    for start, end in merged:
        length += end - start
    print(len(merged), length)


if __name__ == "__main__":
    main()
