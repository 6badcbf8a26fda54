"""An edit of a text, made again on another version of it, line by line or word by word and without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

LEAST_KEPT = 0.5
"""The share of the lines before an edit, or of the words, that have to be there after it: with fewer it is a new text,
and no edit.
"""
_WORD = re.compile(r"\s*\S+|\s+$")


def edit_again(before: str, after: str, current: str) -> str | None:
    """``current`` with what changed from ``before`` to ``after``; None where that is a new text rather than an edit.

    New lines go behind the line that they followed, or to the end where that is gone; a line that is there already is
    not added twice. Lines that were taken out are taken out. The text ends with a newline if ``current`` does. Where
    too few lines were kept, as in a text of one line, it goes by words: then an edit of words that are other words by
    now can't be made again. It takes time in proportion to the product of the numbers of lines, or words, at worst.
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
    """What is gone from the old lines, in whatever order, is gone from the current ones, and what is new is added."""
    lines = [line for line in current if line not in old or line in new]
    return lines + [line for line in new if line not in old and line not in lines]


class _Change(NamedTuple):
    """``new`` in place of the words from ``start`` to ``end``."""

    start: int
    end: int
    new: Sequence[str]

    @property
    def size(self) -> int:
        """How many words are gone."""
        return self.end - self.start


def _by_words(before: str, after: str, current: str) -> str | None:
    """Both changes of ``before`` in one text; None if one of them is a new text, they are about the same words, or one
    has taken the space away before which the other adds some.
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
    if any(not word[0].isspace() for word in words[1:]):  # one that began a text, and would be glued to another
        return None
    return "".join(words)


def _includes(other: _Change, edit: _Change) -> bool:
    """Whether one change of words does at the same place what another does."""
    if (edit.start, edit.end) != (other.start, other.end):
        return False
    size = len(edit.new)
    return any(other.new[at : at + size] == edit.new for at in range(len(other.new) - size + 1))


def _collide(edit: _Change, other: _Change) -> bool:
    """Whether two changes are about the same words; one of both may only add some between them."""
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
