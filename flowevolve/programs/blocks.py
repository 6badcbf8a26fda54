"""The parts of a program that may change: what is between EVOLVE-BLOCK marks, or all of it where there are none.

A mark is a line of its own, behind any comment leader: ``# EVOLVE-BLOCK-START`` and ``// EVOLVE-BLOCK-END`` are some.
"""

from __future__ import annotations

import re

_START = re.compile(r"^\W*EVOLVE-BLOCK-START\b")
_END = re.compile(r"^\W*EVOLVE-BLOCK-END\b")


def has_marks(text: str) -> bool:
    return any(_START.match(line) for line in text.split("\n"))


def evolvable_lines(text: str) -> list[range]:
    """The lines between marks, block by block; all lines where there are no marks. A block without an end is open."""
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
    """Whether all that is outside of the marks, they included, is the same but for space at the ends of lines."""
    return _outside(old) == _outside(new)


def _outside(text: str) -> list[str]:
    """Runs of lines between blocks; none where there are no marks."""
    if not has_marks(text):
        return []
    lines = [line.rstrip() for line in text.split("\n")]
    blocks = evolvable_lines(text)
    starts = [0, *(block.stop for block in blocks)]
    stops = [*(block.start for block in blocks), len(lines)]
    return ["\n".join(lines[start:stop]) for start, stop in zip(starts, stops, strict=True)]
