"""SEARCH/REPLACE edits, by which a model changes a program without writing all of it.

A block has `SEARCH_LINE`, the lines to replace, `MIDDLE_LINE`, the new lines, and `REPLACE_LINE`. If a program has
several files, a line ``FILE: name`` comes before the block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flowevolve.core.model import UnparsableReplyError
from flowevolve.programs.blocks import outside_unchanged

SEARCH_LINE, MIDDLE_LINE, REPLACE_LINE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
_FILE = re.compile(r"^FILE: *(\S.*)$")


class EditError(UnparsableReplyError):
    """An edit can't be applied; the message names its block, counted from 1."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One block. ``file`` is None if no file was named before it."""

    search: tuple[str, ...]
    replace: tuple[str, ...]
    file: str | None = None

    def __str__(self) -> str:
        """The block as it is written in a reply."""
        named = [] if self.file is None else [f"FILE: {self.file}"]
        return "\n".join([*named, SEARCH_LINE, *self.search, MIDDLE_LINE, *self.replace, REPLACE_LINE])


def parse_edits(reply: str) -> list[Edit]:
    """The blocks of a reply, in order; text between them is ignored. A ``FILE:`` line holds until the next one.

    Raises:
        EditError: if there is no block, or one is incomplete or has nothing to search for.
    """
    edits: list[Edit] = []
    lines = iter(reply.split("\n"))
    file: str | None = None
    for line in lines:
        if named := _FILE.match(line):
            file = named[1].strip().strip("`")
        elif line.rstrip() == SEARCH_LINE:
            number = len(edits) + 1
            search = _up_to(MIDDLE_LINE, lines, number)
            replace = _up_to(REPLACE_LINE, lines, number)
            if not any(each.strip() for each in search):
                raise EditError(f"block {number}: nothing to search for")
            edits.append(Edit(search, replace, file))
    if not edits:
        raise EditError("no SEARCH/REPLACE block in the reply")
    return edits


def _up_to(end: str, lines: Iterator[str], number: int) -> tuple[str, ...]:
    found: list[str] = []
    for line in lines:
        if line.rstrip() == end:
            return tuple(found)
        if line.rstrip() == SEARCH_LINE:
            break
        found.append(line)
    raise EditError(f"block {number}: no line {end!r}")


def apply_edits(text: str, reply: str) -> str:
    """Apply all edits of a reply to a text, each to the result of the one before.

    SEARCH is compared with whole lines, without trailing spaces. If it occurs several times, the first place that may
    change is taken: where the text has EVOLVE-BLOCK marks, only the blocks may change.

    Raises:
        EditError: naming the block that can't be applied, or is incomplete.
    """
    for number, edit in enumerate(parse_edits(reply), 1):
        text = apply_edit(text, edit, number)
    return text


def apply_to_files(files: Mapping[str, str], reply: str) -> dict[str, str]:
    """As `apply_edits`, for several files. If there is only one file, blocks need not name it.

    Raises:
        EditError: as `apply_edits`, and if a block names an unknown file, or none although there are several.
    """
    changed = dict(files)
    for number, edit in enumerate(parse_edits(reply), 1):
        name = next(iter(files)) if edit.file is None and len(files) == 1 else edit.file
        if name is None or name not in changed:
            problem = "no line 'FILE: name' before it" if name is None else f"there is no file {name!r}"
            raise EditError(f"block {number}: {problem}; the files are {', '.join(files)}")
        changed[name] = apply_edit(changed[name], edit, number)
    return changed


def apply_edit(text: str, edit: Edit, number: int = 1) -> str:
    """Apply one edit to a text; ``number`` is that of its block, for messages.

    Raises:
        EditError: if its SEARCH text does not occur, or only where the text must not change.
    """
    lines = text.split("\n")
    places = _places(lines, edit.search)
    for place in places:
        changed = "\n".join([*lines[:place], *edit.replace, *lines[place + len(edit.search) :]])
        if outside_unchanged(text, changed):
            return changed
    if places:
        raise EditError(f"block {number}: changes what is outside of the EVOLVE-BLOCK marks")
    first_line = next(line.strip() for line in edit.search if line.strip())
    raise EditError(f"block {number}: its SEARCH text is not in the program: {first_line[:60]!r}")


def _places(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    stripped, search = [line.rstrip() for line in lines], [line.rstrip() for line in wanted]
    size = len(search)
    return [place for place in range(len(lines) - size + 1) if stripped[place : place + size] == search]
