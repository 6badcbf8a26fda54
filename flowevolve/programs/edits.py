"""SEARCH/REPLACE edits: how a model changes a program without writing it anew.

A block is `SEARCH_LINE`, lines as they are, `MIDDLE_LINE`, lines as they are to be, `REPLACE_LINE`. Where a program has
several files, a line ``FILE: name`` comes before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flowevolve.llm.types import UnparsableReplyError
from flowevolve.programs.blocks import outside_unchanged

SEARCH_LINE, MIDDLE_LINE, REPLACE_LINE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
_FILE = re.compile(r"^FILE: *(\S.*)$")


class EditError(UnparsableReplyError):
    """An edit can't be applied; the message names its block, counted from 1."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One block. ``file`` is None where none was named before it."""

    search: tuple[str, ...]
    replace: tuple[str, ...]
    file: str | None = None

    def __str__(self) -> str:
        """The block as a reply has it."""
        named = [] if self.file is None else [f"FILE: {self.file}"]
        return "\n".join([*named, SEARCH_LINE, *self.search, MIDDLE_LINE, *self.replace, REPLACE_LINE])


def parse_edits(reply: str) -> list[Edit]:
    """The blocks of a reply, in order; what stands between them is left aside. A ``FILE:`` line holds until the next.

    Raises:
        EditError: if there is no block, or one is not complete or has nothing to search for.
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
    """A text with all edits of a reply made, in order, each in the text as it has become.

    SEARCH is compared with whole lines, but for space at their ends. Of several places the first is taken that may
    change: where the text has EVOLVE-BLOCK marks, what is outside of them may not.

    Raises:
        EditError: naming the block that can't be applied, or is not complete.
    """
    for number, edit in enumerate(parse_edits(reply), 1):
        text = apply_edit(text, edit, number)
    return text


def apply_to_files(files: Mapping[str, str], reply: str) -> dict[str, str]:
    """As `apply_edits`, over several files. Blocks without a file's name are for the only one.

    Raises:
        EditError: as `apply_edits`, and if a file is unknown or none is named.
    """
    changed = dict(files)
    for number, edit in enumerate(parse_edits(reply), 1):
        name = next(iter(files)) if edit.file is None and len(files) == 1 else edit.file
        if name is None or name not in changed:
            said = "no line 'FILE: name' before it" if name is None else f"there is no file {name!r}"
            raise EditError(f"block {number}: {said}; the files are {', '.join(files)}")
        changed[name] = apply_edit(changed[name], edit, number)
    return changed


def apply_edit(text: str, edit: Edit, number: int = 1) -> str:
    """A text with one edit made; ``number`` is the block's, for messages.

    Raises:
        EditError: if its SEARCH text is not there, or not where the text may change.
    """
    lines = text.split("\n")
    places = _places(lines, edit.search)
    for place in places:
        changed = "\n".join([*lines[:place], *edit.replace, *lines[place + len(edit.search) :]])
        if outside_unchanged(text, changed):
            return changed
    if places:
        raise EditError(f"block {number}: changes what is outside of the EVOLVE-BLOCK marks")
    raise EditError(f"block {number}: its SEARCH text is not in the program: {_first_words(edit.search)!r}")


def _places(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    stripped, search = [line.rstrip() for line in lines], [line.rstrip() for line in wanted]
    size = len(search)
    return [place for place in range(len(lines) - size + 1) if stripped[place : place + size] == search]


def _first_words(lines: Sequence[str]) -> str:
    return next(line.strip() for line in lines if line.strip())[:60]
