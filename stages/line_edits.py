"""An edit of a text, made again on another version of it, line by line and without a model."""

from __future__ import annotations

from difflib import SequenceMatcher

LEAST_KEPT = 0.5
"""The share of the lines before an edit that have to be there after it: with fewer it is a new text, and no edit."""


def edit_again(before: str, after: str, current: str) -> str | None:
    """``current`` with what changed from ``before`` to ``after``; None where that is a new text rather than an edit.

    New lines go behind the line that they followed, or to the end where that is gone; a line that is there already is
    not added twice. Lines that were taken out are taken out. The text ends with a newline if ``current`` does. It takes
    time in proportion to the product of the numbers of lines, at worst.
    """
    if before == current:
        return after
    old, new = _lines(before), _lines(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    kept = sum(block.size for block in matcher.get_matching_blocks())
    if kept < LEAST_KEPT * len(old):
        return None
    lines = _lines(current)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        place = _place(lines, old, start, end)
        for gone in old[start:end]:
            if gone in lines:
                where = lines.index(gone)
                del lines[where]
                place -= where < place
        added = [line for line in new[new_start:new_end] if not line.strip() or line not in lines]
        lines[place:place] = added
    return "\n".join(lines) + "\n" * (bool(lines) and current.endswith("\n"))


def _lines(text: str) -> list[str]:
    """The lines of a text. Nothing but a newline parts them, so that joined they are the text again."""
    return text.removesuffix("\n").split("\n") if text else []


def _place(lines: list[str], old: list[str], start: int, end: int) -> int:
    """Where in the current lines a change belongs that was made to these old ones: where the first of them that is
    still there stands, or else behind the nearest line before them that is, or at the end.
    """
    for line in old[start:end]:
        if line in lines:
            return lines.index(line)
    for line in reversed(old[:start]):
        if line in lines:
            return lines.index(line) + 1
    return 0 if start == 0 else len(lines)
