"""Applies an edit of a text to another version of the text, line by line or word by word, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

LEAST_KEPT = 0.5
"""The share of the lines, or words, that have to survive an edit. If fewer do, the result is a new text rather than an
edit.
"""
_WORD = re.compile(r"\s*\S+|\s+$")


def edit_again(before: str, after: str, current: str) -> str | None:
    """Apply the change from ``before`` to ``after`` to ``current``; None if ``after`` is a new text rather than an
    edit.

    New lines go where the first line is that they replace, or else after the nearest earlier line that is still there;
    a line that is there already is not added again. Removed lines are removed. The text ends with a newline if
    ``current`` does. If too few lines were kept, as in a text of one line, the edit is applied word by word: then an
    edit of words that have changed meanwhile can't be applied (None). At worst, the time grows with the product of the
    numbers of lines, or words.
    """
    if before == current:
        return after
    old, new = _lines(before), _lines(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    lines = _lines(current)
    if not _is_edit(matcher, old):
        if len(old) > 1 and sum(line in new for line in old) >= LEAST_KEPT * len(old):
            return "\n".join(_reordered(old, new, lines)) + "\n" * (bool(lines) and current.endswith("\n"))
        return _by_words(before, after, current)
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


def _is_edit(matcher: SequenceMatcher[str], old: Sequence[str]) -> bool:
    return sum(block.size for block in matcher.get_matching_blocks()) >= LEAST_KEPT * len(old)


def _reordered(old: Sequence[str], new: Sequence[str], current: Sequence[str]) -> list[str]:
    """The current lines without those that were removed from the old ones, and with the new ones added, whatever the
    order.
    """
    lines = [line for line in current if line not in old or line in new]
    return lines + [line for line in new if line not in old and line not in lines]


class _Change(NamedTuple):
    """Puts ``new`` in place of the words from ``start`` to ``end``."""

    start: int
    end: int
    new: Sequence[str]

    @property
    def size(self) -> int:
        """How many words are removed."""
        return self.end - self.start


def _by_words(before: str, after: str, current: str) -> str | None:
    """One text with both changes of ``before``; None if one of them is a new text, both change the same words, or words
    would be glued together because one change removed the space between them.
    """
    old, words = _WORD.findall(before), _WORD.findall(current)
    edits, others = _changes(old, _WORD.findall(after)), _changes(old, words)
    if edits is None or others is None:
        return None
    for edit in reversed(edits):
        if any(_includes(other, edit) for other in others):
            continue
        if any(_collide(edit, other) for other in others):
            return None
        place = edit.start + sum(len(other.new) - other.size for other in others if other.end <= edit.start)
        words[place : place + edit.size] = edit.new
    if any(not word[0].isspace() for word in words[1:]):  # it began a text, and would be glued to another word
        return None
    return "".join(words)


def _includes(other: _Change, edit: _Change) -> bool:
    """Whether ``other`` does at the same place everything that ``edit`` does."""
    if (edit.start, edit.end) != (other.start, other.end):
        return False
    size = len(edit.new)
    return any(other.new[at : at + size] == edit.new for at in range(len(other.new) - size + 1))


def _collide(edit: _Change, other: _Change) -> bool:
    """Whether two changes concern the same words. One of the two may only insert words between them."""
    inside = edit.start < other.start < edit.end or other.start < edit.start < other.end
    return inside or (edit.start == other.start and edit.size > 0 and other.size > 0)


def _changes(old: Sequence[str], new: Sequence[str]) -> Sequence[_Change] | None:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if not _is_edit(matcher, old):
        return None
    return [
        _Change(start, end, new[new_start:new_end])
        for tag, start, end, new_start, new_end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _lines(text: str) -> list[str]:
    """The lines of a text, split only at newlines, so that joining them gives the text again."""
    return text.removesuffix("\n").split("\n") if text else []


def _place(lines: list[str], old: list[str], start: int, end: int) -> int:
    """Where in the current lines a change to the old lines from ``start`` to ``end`` belongs: at the first of those
    lines that is still there, or else after the nearest earlier line that is; else at the beginning if the change was
    there, or at the end.
    """
    for line in old[start:end]:
        if line in lines:
            return lines.index(line)
    for line in reversed(old[:start]):
        if line in lines:
            return lines.index(line) + 1
    return 0 if start == 0 else len(lines)
