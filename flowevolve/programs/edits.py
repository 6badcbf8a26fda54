"""SEARCH/REPLACE edits, with which a model changes a text without rewriting all of it, and the places they apply to.

An edit applies at exactly one place or not at all. The SEARCH text is matched in several ways, from strict to lenient,
and the first way that finds a place decides: whole lines, except for trailing spaces; the same without the blank lines
at both edges; at another indentation, which the new lines then get as well; without any blank lines; without comments;
and as a part of lines, between words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.programs.blocks import evolvable_lines, is_mark, outside_unchanged

SEARCH_LINE, MIDDLE_LINE, REPLACE_LINE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
_MOST_PLACES = 100
"""Places are counted up to this number; if there are more, the error message says ``or more``."""
_TAB = 4
_LINES_BESIDE_COMMENTS = 4
"""The fewest lines that a SEARCH text must have beside comments, if the comments don't match."""
_SHORTEST_PART = 20
"""The fewest characters of a SEARCH text that may match a part of a line."""


class EditError(UnparsableReplyError):
    """An edit can't be applied."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One SEARCH/REPLACE block. ``file`` is None if no file was named before it."""

    search: tuple[str, ...]
    replace: tuple[str, ...]
    file: str | None = None

    def __str__(self) -> str:
        """The block as it is written in a reply."""
        named = [] if self.file is None else [f"FILE: {self.file}"]
        return "\n".join([*named, SEARCH_LINE, *self.search, MIDDLE_LINE, *self.replace, REPLACE_LINE])


@dataclass(frozen=True, slots=True)
class _Place:
    """The lines of a text from ``start`` up to, but not including, ``stop``, and the lines that replace them."""

    start: int
    stop: int
    lines: Sequence[str]


def apply_edit(text: str, edit: Edit, comment: str = "") -> str:
    """Apply one edit to a text. Where the text has EVOLVE-BLOCK marks, only places between them count.

    ``comment`` is what a comment begins with in the text's language; comments inside of a SEARCH text need not match.
    If it is empty, no line counts as a comment.

    Raises:
        EditError: if the edit fits no place or more than one, changes text outside of the marks, or changes nothing.
    """
    if not any(line.strip() for line in edit.search):
        return _filled(text, edit)
    lines = text.split("\n")
    blocks = evolvable_lines(text)
    edit = _without_marks(edit)
    if [line.rstrip() for line in edit.search] == [line.rstrip() for line in edit.replace]:
        raise EditError("it puts the same text in place of its SEARCH text, so it changes nothing", Reason.NO_OP)
    for way in _WAYS:
        places = list(islice(way(lines, edit, comment), _MOST_PLACES))
        free = [place for place in places if _may_change(text, lines, blocks, place)]
        if len(free) == 1:
            return _changed(lines, free[0])
        if free:
            count = f"{len(free)} or more" if len(places) == _MOST_PLACES else str(len(free))
            raise EditError(
                f"its SEARCH text is at {count} places; write more of the lines around it", Reason.SEVERAL_PLACES
            )
        if places:
            raise EditError("it changes what is outside of the EVOLVE-BLOCK marks", Reason.FROZEN)
    first_line = next(line.strip() for line in edit.search if line.strip())
    raise EditError(f"its SEARCH text is not in the program: {first_line[:60]!r}", Reason.NOT_FOUND)


def _filled(text: str, edit: Edit) -> str:
    """Apply an edit with an empty SEARCH text: fill the one part of the text that may change, which has to be empty."""
    lines = text.split("\n")
    blocks = evolvable_lines(text)
    if len(blocks) == 1 and not any(lines[number].strip() for number in blocks[0]) and any(edit.replace):
        place = _Place(blocks[0].start, blocks[0].stop, edit.replace)
        if _may_change(text, lines, blocks, place):
            return _changed(lines, place)
    raise EditError("it has nothing to search for, and the program is not empty", Reason.NOTHING_TO_SEARCH)


def _may_change(text: str, lines: Sequence[str], blocks: Sequence[range], place: _Place) -> bool:
    inside = any(block.start <= place.start and place.stop <= block.stop for block in blocks)
    if inside and not any(map(is_mark, place.lines)):
        return True
    return outside_unchanged(text, _changed(lines, place))


def _changed(lines: Sequence[str], place: _Place) -> str:
    return "\n".join([*lines[: place.start], *place.lines, *lines[place.stop :]])


def _as_they_are(lines: Sequence[str], edit: Edit, comment: str) -> Iterator[_Place]:
    wanted = [line.rstrip() for line in edit.search]
    for start in _found([line.rstrip() for line in lines], wanted):
        yield _Place(start, start + len(wanted), edit.replace)


def _without_edges(lines: Sequence[str], edit: Edit, comment: str) -> Iterator[_Place]:
    core, above, below = _core(edit)
    wanted = [line.rstrip() for line in core.search]
    for start in _found([line.rstrip() for line in lines], wanted):
        yield _widened(_Place(start, start + len(wanted), core.replace), lines, above, below)


def _indented(lines: Sequence[str], edit: Edit, comment: str) -> Iterator[_Place]:
    core, above, below = _core(edit)
    for start in _found([line.strip() for line in lines], [line.strip() for line in core.search]):
        stop = start + len(core.search)
        moved = _moved(core, lines[start:stop])
        if moved is not None:
            yield _widened(_Place(start, stop, moved), lines, above, below)


def _without_blank_lines(lines: Sequence[str], edit: Edit, comment: str) -> Iterator[_Place]:
    core = _core(edit)[0]
    wanted = [line for line in core.search if line.strip()]
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    for place in _found([lines[number].strip() for number in numbers], [line.strip() for line in wanted]):
        taken = numbers[place : place + len(wanted)]
        moved = _moved(Edit(tuple(wanted), core.replace), [lines[number] for number in taken])
        if moved is not None:
            yield _Place(taken[0], taken[-1] + 1, moved)


def _without_comments(lines: Sequence[str], edit: Edit, comment: str) -> Iterator[_Place]:
    """Find where all lines except comments match. The first and the last line have to match in any case."""
    core = _core(edit)[0]
    filled = [line for line in core.search if line.strip()]
    wanted = [line for line in filled if not line.lstrip().startswith(comment)]
    if not comment or len(wanted) < _LINES_BESIDE_COMMENTS:
        return
    first = [] if filled[0] is wanted[0] else filled[:1]
    last = [] if filled[-1] is wanted[-1] else filled[-1:]
    numbers = [number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(comment)]
    for place in _found([lines[number].strip() for number in numbers], [line.strip() for line in wanted]):
        stop = place + len(wanted)
        above = range(numbers[place - 1] + 1 if place else 0, numbers[place])
        below = range(numbers[stop - 1] + 1, numbers[stop] if stop < len(numbers) else len(lines))
        starts, stops = _same(lines, above, first), _same(lines, below, last)
        if len(starts) == len(first) and len(stops) == len(last):
            taken = [*starts, *numbers[place:stop], *stops]
            moved = _moved(Edit((*first, *wanted, *last), core.replace), [lines[number] for number in taken])
            if moved is not None:
                yield _Place(taken[0], taken[-1] + 1, moved)


def _same(lines: Sequence[str], among: range, edge: Sequence[str]) -> list[int]:
    """The numbers from ``among`` of lines that match the comment at an edge of a SEARCH text, if there is one."""
    return [number for number in among if edge and lines[number].strip() == edge[0].strip()]


def _within_lines(lines: Sequence[str], edit: Edit, comment: str) -> Iterator[_Place]:
    """Find where the SEARCH text begins or ends inside of a line, between words."""
    wanted = "\n".join(edit.search).strip()
    if len(wanted) < _SHORTEST_PART:
        return
    text = "\n".join(lines)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    place = text.find(wanted)
    while place >= 0:
        end = place + len(wanted)
        if not (_in_word(text, place) or _in_word(text, end)):
            start, stop = bisect_right(starts, place) - 1, bisect_right(starts, end - 1)
            before = text[starts[start] : place]
            after = text[end : starts[stop] - 1]
            yield _Place(start, stop, (before + "\n".join(edit.replace).strip() + after).split("\n"))
        place = text.find(wanted, place + 1)


def _in_word(text: str, place: int) -> bool:
    """Whether a place in a text lies inside of a word."""
    sides = text[max(0, place - 1) : place + 1]
    return 0 < place < len(text) and all(each.isalnum() or each == "_" for each in sides)


_WAYS = (
    _as_they_are,
    _without_edges,
    _indented,
    _without_blank_lines,
    _without_comments,
    _within_lines,
)


def _without_marks(edit: Edit) -> Edit:
    """The edit without EVOLVE-BLOCK marks at the edges of its two texts, so that the marks stay in the text."""
    search, replace = list(edit.search), list(edit.replace)
    for edge in (0, -1):
        filled = [number for number, line in enumerate(search) if line.strip()]
        if len(filled) > 1 and is_mark(search[filled[edge]]):
            other = [number for number, line in enumerate(replace) if line.strip()]
            if other and is_mark(replace[other[edge]]):
                del replace[other[edge]]
            del search[filled[edge]]
    return Edit(tuple(search), tuple(replace), edit.file)


def _core(edit: Edit) -> tuple[Edit, int, int]:
    """The edit without the blank lines at the edges of its SEARCH text, and without up to as many at those of its
    REPLACE text.

    Also returns how many blank lines the SEARCH text has above and below that the REPLACE text lacks.
    """
    filled = [number for number, line in enumerate(edit.search) if line.strip()]
    above, below = filled[0], len(edit.search) - 1 - filled[-1]
    replace = list(edit.replace)
    while above and replace and not replace[0].strip():
        del replace[0]
        above -= 1
    while below and replace and not replace[-1].strip():
        del replace[-1]
        below -= 1
    return Edit(edit.search[filled[0] : filled[-1] + 1], tuple(replace), edit.file), above, below


def _widened(place: _Place, lines: Sequence[str], above: int, below: int) -> _Place:
    """The place, extended by the blank lines around it that the edit removes, as far as the text has them."""
    start, stop = place.start, place.stop
    while above and start and not lines[start - 1].strip():
        start, above = start - 1, above - 1
    while below and stop < len(lines) and not lines[stop].strip():
        stop, below = stop + 1, below - 1
    return _Place(start, stop, place.lines)


def _moved(edit: Edit, lines: Sequence[str]) -> Sequence[str] | None:
    """The new lines, reindented like the lines found against the SEARCH text; None if that shift is not constant.

    The first line may be shifted by another amount, since stripping a text removes the indentation of that line alone.
    """
    shifts = [_width(line) - _width(old) for line, old in zip(lines, edit.search, strict=True) if old.strip()]
    first, rest = shifts[0], shifts[1:]
    if any(shift != rest[0] for shift in rest):
        return None
    shift = rest[0] if rest else first
    tabs = any(line.startswith("\t") for line in lines)
    alone = first != shift
    moved: list[str] = []
    for number, line in enumerate(edit.replace):
        same_start = alone and number == 0 and _width(line) == _width(edit.search[0])
        width = _width(line) + (first if same_start else shift)
        moved.append(_spaces(max(0, width), tabs=tabs) + line.lstrip() if line.strip() else line)
    return moved


def _width(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(_TAB))


def _spaces(width: int, *, tabs: bool) -> str:
    return "\t" * (width // _TAB) + " " * (width % _TAB) if tabs else " " * width


def _found(lines: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines at which the ``wanted`` lines begin."""
    text = "\n".join(["", *lines, ""])
    pattern = "\n".join(["", *wanted, ""])
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    place = text.find(pattern)
    while place >= 0:
        yield bisect_right(starts, place) - 1
        place = text.find(pattern, place + 1)
