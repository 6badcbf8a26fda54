"""The parts of a program, the slots that they are sorted into, and the restoring of parts that must not change.

A part is a function or a class at the top level of a Python file, or `REST`, which is all the rest of the file:
imports, constants, statements. It has the name of its function or class; in a program of several files, the name is
``file:name``. If a file defines nothing but one class with several methods, the methods are parts, named
``Class.method``. A file that is not Python, or does not parse, is a single part.

Parts are compared as syntax trees, since a model that rewrites a whole program also changes its layout, comments and
docstrings, which don't matter. Trees are compared by `ast.dump`, which, unlike `ast.unparse`, distinguishes any two
trees. A part is restored with its old text, including comments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve.core.payload_kinds import payload
from flowevolve.programs.blocks import outside_unchanged
from flowevolve.programs.features import syntax_error
from flowevolve.programs.names import (
    DEFINITIONS,
    IMPORTS,
    first_line,
    is_assignment_of_names,
    is_docstring,
    names_bound_within,
    names_set_globally,
    parsed,
    star_imports,
    tree_text,
)

SlotName = Literal["io_parsing", "core_logic", "edge_case", "perf_patch", "misc"]
SLOTS: tuple[SlotName, ...] = ("io_parsing", "core_logic", "edge_case", "perf_patch", "misc")
"""The slots of Controlled Self-Evolution (arXiv 2601.07348, appendix E)."""
REST = "<rest>"
_LINE_END = re.compile(r"\r\n|\r|\n")


@payload("programs.Slot")
@dataclass(frozen=True, slots=True)
class Slot:
    """Parts that serve one purpose, whether they should be kept as they are, and why."""

    name: SlotName
    parts: tuple[str, ...]
    keep: bool
    why: str = ""


def frozen_parts(slots: Iterable[Slot]) -> tuple[str, ...]:
    """The parts of slots to keep that are not in a slot to improve as well."""
    slots = tuple(slots)
    improved = {part for slot in slots if not slot.keep for part in slot.parts}
    return tuple(dict.fromkeys(part for slot in slots if slot.keep for part in slot.parts if part not in improved))


def parts_of(program: Mapping[str, str]) -> tuple[str, ...]:
    """The names of a program's parts, file by file, in their order. `REST` comes last in its file, if there is any."""
    return tuple(
        _qualified(program, file, name) for file, text in program.items() for name in _read(file, text).parts()
    )


def unchanged(old: Mapping[str, str], new: Mapping[str, str], parts: Iterable[str]) -> bool:
    """Whether these parts of the old program are the same in the new one.

    Imports that were added to `REST` don't count as a change, unless they bind a name of the old program. A function
    counts as changed if its name is bound again further down (even by a star import) or by a ``global`` statement in
    another function.
    """
    for file, names in _by_file(old, parts):
        before = _read(file, old[file])
        after = _read(file, new.get(file, ""), before)
        if not all(before.same(after, name) for name in names):
            return False
    return True


def restore(old: Mapping[str, str], new: Mapping[str, str], parts: Iterable[str]) -> dict[str, str] | None:
    """The new program with these parts of the old one restored where they have changed.

    Return None if that is impossible, because the result would not compile, would change text outside of EVOLVE-BLOCK
    marks, or would still bind the name of a part to something else.
    """
    parts = tuple(parts)
    restored = dict(new)
    for file, names in _by_file(old, parts):
        before = _read(file, old[file])
        after = _read(file, new.get(file, ""), before)
        if not all(before.same(after, name) for name in names):
            restored[file] = before.put_back(after, names)
            if file.endswith(".py") and syntax_error(restored[file]) is not None:
                return None
            if not outside_unchanged(old[file], restored[file]):
                return None
    return restored if unchanged(old, restored, parts) else None


def _qualified(program: Mapping[str, str], file: str, name: str) -> str:
    return name if len(program) == 1 else f"{file}:{name}"


def _by_file(program: Mapping[str, str], parts: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The files that have some of these parts, with the names of the parts in each."""
    wanted = set(parts)
    for file, text in program.items():
        names = [name for name in _read(file, text).parts() if _qualified(program, file, name) in wanted]
        if names:
            yield file, names


def _read(file: str, text: str, like: _Source | None = None) -> _Source:
    """Read a file. ``like`` is the file it was derived from; a class split into methods there is split here, too."""
    lines = _LINE_END.split(text)
    tree = parsed(text) if file.endswith(".py") else None
    if tree is None:
        return _Source(lines, None)
    name = _lone_class(tree) if like is None else like.taken_apart
    return _Source(lines, [each for node in tree.body for each in _statements(node, name)], name)


def _lone_class(tree: ast.Module) -> str | None:
    """The name of a file's only definition if it is a class with several methods, which are then the parts."""
    found = [node for node in tree.body if isinstance(node, DEFINITIONS)]
    if len(found) != 1 or not isinstance(found[0], ast.ClassDef):
        return None
    return found[0].name if sum(isinstance(each, DEFINITIONS) for each in found[0].body) > 1 else None


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement at the top level or in the class that is split into methods, the part it belongs to, and its syntax
    tree as text, which is empty for docstrings.
    """

    node: ast.stmt
    part: str
    tree: str


def _statements(node: ast.stmt, taken_apart: str | None) -> Iterator[_Statement]:
    if not isinstance(node, ast.ClassDef) or node.name != taken_apart:
        yield _statement(node, "")
        return
    body, node.body = node.body, [ast.Pass()]
    yield _Statement(node, REST, ast.dump(node))
    for each in body:
        yield _statement(each, f"{taken_apart}.")


def _statement(node: ast.stmt, prefix: str) -> _Statement:
    part = f"{prefix}{node.name}" if isinstance(node, DEFINITIONS) else REST
    return _Statement(node, part, "" if is_docstring(node) else tree_text(node))


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Consecutive lines of a file: one definition, or the lines between two definitions."""

    part: str
    lines: Sequence[str]


class _Source:
    """A source file. ``statements`` is None if it is not Python or does not parse; then all of it is `REST`."""

    def __init__(
        self, lines: Sequence[str], statements: Sequence[_Statement] | None, taken_apart: str | None = None
    ) -> None:
        self.taken_apart = taken_apart
        self._lines = lines
        self._parsed = statements is not None
        self._statements = statements or ()

    def parts(self) -> list[str]:
        if not self._parsed:
            return [REST]
        names = dict.fromkeys(each.part for each in self._statements)
        return sorted(names, key=lambda name: name == REST)

    def same(self, new: _Source, part: str) -> bool:
        """Whether this part is the same in the new source."""
        if not (self._parsed and new._parsed):
            return [line.rstrip() for line in self._lines] == [line.rstrip() for line in new._lines]
        if part == REST:
            added = self._added(new)
            kept = [each.tree for each in new._of(REST) if each not in added and each.tree]
            shadowed = self._bound() & ({*new.parts(), *new._set_globally()} - {*self.parts(), *self._set_globally()})
            return [each.tree for each in self._of(REST) if each.tree] == kept and not shadowed
        same = [each.tree for each in self._of(part)] == [each.tree for each in new._of(part)]
        return same and new._rebinding(part) <= self._rebinding(part)

    def put_back(self, new: _Source, parts: Sequence[str]) -> str:
        """The text of the new source with these parts of this one.

        If `REST` is one of them and has changed, the text of this source is the base instead: it gets the other
        definitions of the new source, and its new imports and names, each after the definition that it follows there,
        or else before the first definition that may change.
        """
        if not (self._parsed and new._parsed):
            return "\n".join(self._lines)
        ours, theirs = self._chunks(), new._chunks()
        if REST not in parts or self.same(new, REST):
            return _text(_overlaid(theirs, ours, [part for part in parts if part != REST]))
        free = {*new.parts(), *self.parts()} - {REST, *parts}
        chunks = _overlaid(ours, theirs, free)
        self._take_along(new, chunks, free)
        return _text(chunks)

    def _take_along(self, new: _Source, chunks: list[_Chunk], free: Collection[str]) -> None:
        """Insert what the new source adds to `REST` into the chunks."""
        behind: str | None = None
        added = self._added(new)
        lines: dict[str | None, list[str]] = {}
        for each in new._statements:
            if each.part in free:
                behind = each.part
            elif each in added:
                lines.setdefault(behind, []).extend(new._span(each.node))
        first = next((place for place, chunk in enumerate(chunks) if chunk.part in free), None)
        if first is not None and None in lines:
            chunks.insert(first, _Chunk(REST, [*lines[None], "", ""]))
        for part, after in lines.items():
            place = next((place for place, chunk in enumerate(chunks) if chunk.part == part), None)
            if part is not None and place is not None:
                chunks.insert(place + 1, _Chunk(REST, ["", *after]))

    def _of(self, part: str) -> list[_Statement]:
        return [each for each in self._statements if each.part == part]

    def _bound(self) -> set[str]:
        """The names that `REST` binds."""
        return {name for each in self._of(REST) for name in names_bound_within(each.node)}

    def _set_globally(self) -> set[str]:
        """The names that functions and classes bind at module level, by ``global``."""
        return {name for each in self._statements if each.part != REST for name in names_set_globally(each.node)}

    def _rebinding(self, part: str) -> set[str]:
        """Everything that may bind a definition's name to something else. Star imports count if they come after it."""
        defined = max(place for place, each in enumerate(self._statements) if each.part == part)
        later = [each.node for each in self._statements[defined + 1 :] if each.part == REST]
        found = {f"import {module}" for node in later for module in star_imports(node)}
        if part in self._bound():
            found.add("name")
        if part in self._set_globally():
            found.add("global")
        return found

    def _added(self, new: _Source) -> list[_Statement]:
        """The imports and assignments in `REST` of the new source that this one lacks; they bind none of its names."""
        known = {each.tree for each in self._of(REST)}
        taken = {"*", *self.parts(), *self._bound()}
        found: list[_Statement] = []
        for each in new._of(REST):
            names = names_bound_within(each.node)
            adds = isinstance(each.node, IMPORTS) or is_assignment_of_names(each.node)
            if adds and each.tree not in known and not taken & names:
                found.append(each)
        return found

    def _span(self, node: ast.stmt) -> Sequence[str]:
        return self._lines[first_line(node) - 1 : node.end_lineno]

    def _chunks(self) -> list[_Chunk]:
        chunks: list[_Chunk] = []
        done = 0
        for each in self._statements:
            if each.part != REST:
                lines, end = self._span(each.node), each.node.end_lineno or each.node.lineno
                chunks += [_Chunk(REST, self._lines[done : end - len(lines)]), _Chunk(each.part, lines)]
                done = end
        return [*chunks, _Chunk(REST, self._lines[done:])]


def _overlaid(base: Sequence[_Chunk], other: Sequence[_Chunk], parts: Collection[str]) -> list[_Chunk]:
    """``base`` with these definitions taken from ``other``; those that ``other`` lacks are removed."""
    theirs: dict[str, list[str]] = {}
    order = list(dict.fromkeys(chunk.part for chunk in other if chunk.part != REST))
    for chunk in other:
        if chunk.part in parts:
            before = [*theirs[chunk.part], "", ""] if chunk.part in theirs else []
            theirs[chunk.part] = [*before, *chunk.lines]
    chunks: list[_Chunk] = []
    for chunk in base:
        if chunk.part not in parts:
            chunks.append(chunk)
        elif chunk.part in theirs and not _has(chunks, chunk.part):
            chunks.append(_Chunk(chunk.part, theirs[chunk.part]))
    for place, part in enumerate(order):
        if part in theirs and not _has(chunks, part):
            _insert(chunks, _Chunk(part, theirs[part]), order[:place])
    return chunks


def _has(chunks: Sequence[_Chunk], part: str) -> bool:
    return any(chunk.part == part for chunk in chunks)


def _insert(chunks: list[_Chunk], new: _Chunk, before: Sequence[str]) -> None:
    """Insert a definition after the nearest of ``before`` that is present, else before all others, or at the end if
    there are none.
    """
    places = {chunk.part: place for place, chunk in enumerate(chunks) if chunk.part != REST}
    behind = next((places[part] for part in reversed(before) if part in places), None)
    if behind is not None:
        chunks[behind + 1 : behind + 1] = [_Chunk(REST, ["", ""]), new]
    else:
        place = min(places.values(), default=len(chunks))
        chunks[place:place] = [new, _Chunk(REST, ["", ""])]


def _text(chunks: Sequence[_Chunk]) -> str:
    return "\n".join(line for chunk in chunks for line in chunk.lines)
