"""Puts what a model wrote into a program of which only parts may change, whatever the model did to the rest of it.

Text outside of the EVOLVE-BLOCK marks is always the parent's. What the new program has there is left out, except for
imports and for definitions of new names that the blocks use; these go to the top of the first block.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flowevolve.core.reply_reading import Reason, UnparsableReplyError
from flowevolve.programs.blocks import evolvable_lines, frozen_lines, has_marks, is_mark, unended
from flowevolve.programs.names import (
    DEFINITIONS,
    IMPORTS,
    bound_names,
    first_line,
    is_docstring,
    lines_in_texts,
    parsed,
    used_names,
)

_COMMENT = re.compile(r"\s*(?://|/\*|\*)")
_PYTHON_COMMENT = re.compile(r"\s*#")
_IMPORT = re.compile(r"\s*(?:import\s|from\s+\S+\s+import\s|#\s*include\b|using\s|use\s)")


@dataclass(frozen=True, slots=True)
class Spliced:
    """A child, and whether something that the new program had outside of the blocks was ignored."""

    text: str
    ignored: bool = False


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a new program has for each block, and the lines outside of the blocks that are added to the first one."""

    pieces: Sequence[Sequence[str]]
    added: Sequence[str] = ()
    ignored: bool = False


def splice(parent: str, new: str, *, python: bool) -> Spliced:
    """Return the parent with its blocks replaced by those of the new program.

    The new program may have the marks or not, and may be the whole program or only the blocks.

    Raises:
        UnparsableReplyError: if it is unclear which part of it belongs into which block.
    """
    if not has_marks(parent):
        return Spliced(new)
    parts = _marked(parent, new, python=python) if has_marks(new) else _unmarked(parent, new, python=python)
    if not any(line.strip() for piece in parts.pieces for line in piece):
        raise UnparsableReplyError("there is nothing between the EVOLVE-BLOCK marks in the reply", Reason.MISSING)
    lines = parent.split("\n")
    ranges = evolvable_lines(parent)
    for number in reversed(range(len(ranges))):
        place = ranges[number]
        old = lines[place.start : place.stop]
        pieces = [parts.added if number == 0 else (), parts.pieces[number]]
        lines[place.start : place.stop] = [line for each in pieces for line in _indented_like(old, each)]
    return Spliced("\n".join(lines), parts.ignored)


def _indented_like(old: Sequence[str], new: Sequence[str]) -> Sequence[str]:
    """The new lines with the indentation that the old ones have, if the new ones have none. Lines inside of a text that
    goes over several lines stay as they are.
    """
    first, begun = (next((line for line in lines if line.strip()), "") for lines in (old, new))
    space = first[: len(first) - len(first.lstrip())]
    if begun[:1].isspace() or not space:
        return new
    inside = lines_in_texts("\n".join(new))
    return [space + line if line.strip() and number not in inside else line for number, line in enumerate(new)]


def _marked(parent: str, new: str, *, python: bool) -> _Parts:
    ranges = evolvable_lines(new)
    expected = evolvable_lines(parent)
    if len(ranges) != len(expected):
        raise UnparsableReplyError(
            f"the program has {len(expected)} EVOLVE-BLOCK, and the reply {len(ranges)}", Reason.AMBIGUOUS
        )
    lines = new.split("\n")
    pieces = [lines[place.start : place.stop] for place in ranges]
    if unended(new) and not unended(parent):
        pieces[-1] = _without_end(parent, pieces[-1], python=python)
    inside = {number for place in ranges for number in place}
    outside = [line for number, line in enumerate(lines) if number not in inside and not is_mark(line)]
    added = _taken_along(parent, new, inside) if python else _includes(parent, outside)
    theirs = [line for line in _significant(outside, python=python) if not _IMPORT.match(line)]
    ours = [line for line in _significant(_frozen_lines(parent), python=python) if not _IMPORT.match(line)]
    return _Parts(pieces, added, bool(theirs) and theirs != ours)


def _taken_along(parent: str, new: str, inside: set[int]) -> list[str]:
    """The lines of new imports and of new definitions that the blocks use, from outside of them."""
    tree, old = parsed(new), parsed(parent)
    if tree is None or old is None:
        return []
    known = {ast.dump(node) for node in old.body} | {ast.dump(node) for node in tree.body if node.lineno - 1 in inside}
    taken = {name for node in old.body for name in bound_names(node)}
    wanted = {name for node in tree.body if node.lineno - 1 in inside for name in used_names(node)}
    lines = new.split("\n")
    added: list[str] = []
    for node in reversed(tree.body):
        if node.lineno - 1 in inside or ast.dump(node) in known or _is_future(node):
            continue
        names = bound_names(node)
        is_import = isinstance(node, IMPORTS)
        if names and not names & taken and (is_import or (names & wanted and _defines(node))):
            added = [*_span(lines, node), *([] if is_import else [""]), *added]
            wanted |= used_names(node)
    return added


def _includes(parent: str, outside: Iterable[str]) -> list[str]:
    known = {line.strip() for line in parent.split("\n")}
    return [line for line in outside if _IMPORT.match(line) and line.strip() not in known]


def _unmarked(parent: str, new: str, *, python: bool) -> _Parts:
    new = "\n".join(line for line in new.split("\n") if not is_mark(line))
    if python and len(evolvable_lines(parent)) == 1:
        found = _by_statements(parent, new)
        if found is not None:
            return found
    return _by_lines(parent, new, python=python)


def _by_statements(parent: str, new: str) -> _Parts | None:
    """The new program's statements without its versions of the parent's frozen part; None if these are unclear."""
    old, tree = parsed(parent), parsed(new)
    (block,) = evolvable_lines(parent)
    if old is None or tree is None:
        return None
    if any(node.lineno - 1 < block.start <= (node.end_lineno or 0) - 1 for node in old.body):
        return None
    frozen = [node for node in old.body if node.lineno - 1 not in block]
    own = {name for node in old.body if node.lineno - 1 in block for name in bound_names(node)}
    held = {name for node in frozen for name in bound_names(node)} - own
    dumps = {ast.dump(node) for node in frozen}
    lines = new.split("\n")
    ours = {line.strip() for line in _frozen_lines(parent)}
    kept: list[ast.stmt] = []
    dropped: set[int] = set()
    ignored = False
    for node in tree.body:
        if _belongs_to(node, dumps, held, frozen) or _is_future(node):
            ignored = ignored or ast.dump(node) not in dumps
            first = first_line(node) - 1
            while first > 0 and lines[first - 1].lstrip().startswith("#") and lines[first - 1].strip() in ours:
                first -= 1
            dropped.update(range(first, node.end_lineno or node.lineno))
        else:
            kept.append(node)
    _check_whole(kept, frozen, own)
    piece = [line for number, line in enumerate(lines) if number not in dropped]
    return _Parts([_trimmed(piece)], ignored=ignored)


def _check_whole(kept: Sequence[ast.stmt], frozen: Sequence[ast.stmt], own: set[str]) -> None:
    """Raises: UnparsableReplyError if the statements kept lack a name that the frozen part uses from the block."""
    bound = {name for node in kept for name in bound_names(node)}
    needed = {name for node in frozen for name in used_names(node)} & own
    if needed - bound:
        raise UnparsableReplyError(
            f"the reply has no EVOLVE-BLOCK marks, and lacks {', '.join(sorted(needed - bound))}, which the rest "
            "of the program needs",
            Reason.ELIDED,
        )


def _belongs_to(node: ast.stmt, dumps: set[str], held: set[str], frozen: Sequence[ast.stmt]) -> bool:
    """Whether a statement of the new program is its version of one in the parent's frozen part."""
    if ast.dump(node) in dumps:
        return True
    if isinstance(node, IMPORTS):
        return False
    if is_docstring(node):
        return any(map(is_docstring, frozen))
    if isinstance(node, ast.If) and "__name__" in used_names(node):
        return any(isinstance(each, ast.If) and "__name__" in used_names(each) for each in frozen)
    names = bound_names(node)
    return _defines(node) and bool(names) and names <= held


def _by_lines(parent: str, new: str, *, python: bool) -> _Parts:
    """The parts of the new program between the parent's frozen sections, which are found in it by their lines."""
    sections = [_significant(section, python=python) for section in _frozen_sections(parent)]
    lines = new.split("\n")
    numbered = [(number, line) for number, line in enumerate(lines) if _significant([line], python=python)]
    added, start = _after_prefix(sections[0], numbered)
    stop = _before_suffix(sections[-1], numbered)
    ignored = start is None or stop is None
    if start is None:
        start = _anchor(sections[0][-1], numbered) + 1
    if stop is None:
        stop = _anchor(sections[-1][0], numbered)
    inner = numbered[start:stop]
    bounds = [numbered[start - 1][0] + 1 if start else 0]
    for section in sections[1:-1]:
        place = _place_of(section, inner)
        bounds += [inner[place][0], inner[place + len(section) - 1][0] + 1]
    bounds.append(len(lines) if stop >= len(numbered) else numbered[stop][0])
    pieces = [_trimmed(lines[one:other]) for one, other in zip(bounds[::2], bounds[1::2], strict=True)]
    return _Parts(pieces, added, ignored)


def _after_prefix(section: Sequence[str], numbered: Sequence[tuple[int, str]]) -> tuple[list[str], int | None]:
    """Return new imports among the lines of the first section, and the number of significant lines up to its end.

    The number is 0 if nothing of the section is there, and None if the section is there but changed.
    """
    place = 0
    added: list[str] = []
    for wanted in section:
        while place < len(numbered) and numbered[place][1].strip() != wanted and _IMPORT.match(numbered[place][1]):
            added.append(numbered[place][1])
            place += 1
        if place == len(numbered) or numbered[place][1].strip() != wanted:
            theirs = {line.strip() for _, line in numbered}
            there = any(line in theirs for line in section if len(line) > 3 and not _IMPORT.match(line))
            return ([], None) if there else ([], 0)
        place += 1
    return added, place


def _before_suffix(section: Sequence[str], numbered: Sequence[tuple[int, str]]) -> int | None:
    theirs = [line.strip() for _, line in numbered]
    if not section or theirs[-len(section) :] == list(section):
        return len(numbered) - len(section)
    return None if any(line in theirs for line in section if len(line) > 3) else len(numbered)


def _anchor(wanted: str, numbered: Sequence[tuple[int, str]]) -> int:
    """Return the place of a line. Raises UnparsableReplyError if it is not there exactly once."""
    places = [place for place, (_, line) in enumerate(numbered) if line.strip() == wanted]
    if len(places) != 1:
        raise UnparsableReplyError(
            "the reply has no EVOLVE-BLOCK marks, and changes what is outside of them; keep the marks", Reason.FROZEN
        )
    return places[0]


def _place_of(section: Sequence[str], numbered: Sequence[tuple[int, str]]) -> int:
    theirs = [line.strip() for _, line in numbered]
    size = len(section)
    places = [
        place for place in range(len(theirs) - size + 1) if size and theirs[place : place + size] == list(section)
    ]
    if len(places) != 1:
        raise UnparsableReplyError(
            "the reply has no EVOLVE-BLOCK marks, and the program has several blocks; keep the marks", Reason.AMBIGUOUS
        )
    return places[0]


def _without_end(parent: str, piece: Sequence[str], *, python: bool) -> list[str]:
    """The piece of a block whose end mark was forgotten, without the section that follows the block in the parent."""
    section = _significant(_frozen_sections(parent)[-1], python=python)
    numbered = [(number, line) for number, line in enumerate(piece) if _significant([line], python=python)]
    stop = _before_suffix(section, numbered)
    if stop is None:
        stop = _anchor(section[0], numbered)
    return list(piece) if stop >= len(numbered) else _trimmed(piece[: numbered[stop][0]])


def _frozen_sections(text: str) -> list[list[str]]:
    """The lines before, between and after the blocks, without the marks."""
    lines = text.split("\n")
    return [[line for line in lines[place.start : place.stop] if not is_mark(line)] for place in frozen_lines(text)]


def _frozen_lines(text: str) -> list[str]:
    return [line for section in _frozen_sections(text) for line in section]


def _significant(lines: Iterable[str], *, python: bool) -> list[str]:
    comment = _PYTHON_COMMENT if python else _COMMENT
    return [line.strip() for line in lines if line.strip() and not comment.match(line)]


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Without blank lines at both ends."""
    kept = [number for number, line in enumerate(lines) if line.strip()]
    return list(lines[kept[0] : kept[-1] + 1]) if kept else []


def _span(lines: Sequence[str], node: ast.stmt) -> Sequence[str]:
    return lines[first_line(node) - 1 : node.end_lineno]


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, (*DEFINITIONS, ast.Assign, ast.AnnAssign))


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"
