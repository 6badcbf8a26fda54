"""The parts of a program that may change: those between EVOLVE-BLOCK marks, or all of it if there are no marks.

A mark is a line of its own in a comment of any style, such as ``# EVOLVE-BLOCK-START`` or ``// EVOLVE-BLOCK-END``.
"""

from __future__ import annotations

import re

_START = re.compile(r"^\W*EVOLVE-BLOCK-START\b")
_END = re.compile(r"^\W*EVOLVE-BLOCK-END\b")


def has_marks(text: str) -> bool:
    return any(_START.match(line) for line in text.split("\n"))


def is_mark(line: str) -> bool:
    return _START.match(line) is not None or _END.match(line) is not None


def unended(text: str) -> bool:
    """Whether the last block has no end mark."""
    blocks = evolvable_lines(text)
    return has_marks(text) and blocks[-1].stop == len(text.split("\n"))


def evolvable_lines(text: str) -> list[range]:
    """The line numbers, from 0, between the marks: a range for each block, up to the last line if its end mark is
    missing.

    Without marks there is one range with all lines.
    """
    lines = text.split("\n")
    blocks: list[range] = []
    start: int | None = None
    for number, line in enumerate(lines):
        if start is None and _START.match(line):
            start = number + 1
        elif start is not None and _END.match(line):
            blocks.append(range(start, number))
            start = None
    if start is not None:
        blocks.append(range(start, len(lines)))
    return blocks or [range(len(lines))]


def outside_unchanged(old: str, new: str) -> bool:
    """Whether the text outside of the blocks, marks included, is the same except for trailing spaces."""
    return _outside(old) == _outside(new)


def _outside(text: str) -> list[str]:
    """The texts before, between and after the blocks, marks included; none if there are no marks."""
    if not has_marks(text):
        return []
    lines = [line.rstrip() for line in text.split("\n")]
    return ["\n".join(lines[place.start : place.stop]) for place in frozen_lines(text)]


def frozen_lines(text: str) -> list[range]:
    """The numbers of the lines before, between and after the blocks, those of the marks included."""
    blocks = evolvable_lines(text)
    starts = [0, *(block.stop for block in blocks)]
    stops = [*(block.start for block in blocks), text.count("\n") + 1]
    return [range(start, stop) for start, stop in zip(starts, stops, strict=True)]
