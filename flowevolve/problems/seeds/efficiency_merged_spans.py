"""Spans that touch become one, round after round."""

import sys

ROUNDS = 3
"""For each span."""

Span = tuple[int, int]


def read_spans() -> list[Span]:
    _, *numbers = map(int, sys.stdin.read().split())
    ends = iter(numbers)
    return list(zip(ends, ends, strict=True))


def touch(one: Span, other: Span) -> bool:
    start, end = one
    begin, stop = other
    return start <= stop and begin <= end


def joined(one: Span, other: Span) -> Span:
    start, end = one
    begin, stop = other
    return min(start, begin), max(end, stop)


def one_round(spans: list[Span]) -> list[Span]:
    """Each span becomes part of the first one before it that it touches."""
    merged: list[Span] = []
    for span in spans:
        for place, other in enumerate(merged):
            if touch(span, other):
                merged[place] = joined(span, other)
                break
        else:
            merged.append(span)
    return merged


def merged_spans(spans: list[Span]) -> list[Span]:
    history = []
    for _ in range(ROUNDS * len(spans)):
        history.append(list(spans))
        spans = sorted(spans)
        spans = one_round(spans)
    return spans


def main() -> None:
    merged = merged_spans(read_spans())
    print(len(merged), sum(end - start for start, end in merged))


if __name__ == "__main__":
    main()
