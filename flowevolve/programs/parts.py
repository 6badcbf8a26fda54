"""The parts of a program, the slots that they are sorted into, and the restoring of parts that must not change.

A part is a function or a class at the top level of a Python file, or `REST`, which is all the rest of the file:
imports, constants, statements. It is named by its function or class, in a program of several files ``file:name``. A
file that is not Python, or does not parse, is a single part.

Parts are compared as syntax trees, since a model that rewrites a whole program also changes its layout and comments,
which don't matter. Trees are compared by `ast.dump`, which distinguishes any two of them, unlike `ast.unparse`. A part
is restored with its old text, including comments.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flowevolve.core.payload_kinds import payload
from flowevolve.programs.blocks import outside_unchanged
from flowevolve.programs.features import syntax_error

SlotName = Literal["io_parsing", "core_logic", "edge_case", "perf_patch", "misc"]
SLOTS: tuple[SlotName, ...] = ("io_parsing", "core_logic", "edge_case", "perf_patch", "misc")
"""The slots of Controlled Self-Evolution (arXiv 2601.07348, appendix E)."""
REST = "<rest>"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_LINE_END = re.compile(r"\r\n|\r|\n")


@payload("programs.Slot")
@dataclass(frozen=True, slots=True)
class Slot:
    """The parts that serve one purpose, whether they should be kept as they are, and why."""

    name: SlotName
    parts: tuple[str, ...]
    keep: bool
    why: str = ""


def frozen_parts(slots: Iterable[Slot]) -> tuple[str, ...]:
    """The parts of slots to keep that are in no slot to improve."""
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
    whose name is bound again further down (be it by a star import), or by a ``global`` of another one, has changed.
    """
    for file, names in _by_file(old, parts):
        before, after = _read(file, old[file]), _read(file, new.get(file, ""))
        if not all(before.same(after, name) for name in names):
            return False
    return True


def restore(old: Mapping[str, str], new: Mapping[str, str], parts: Iterable[str]) -> dict[str, str] | None:
    """The new program with these parts of the old one restored where they have changed.

    None if that can't be done: the result would not compile, would change text outside of EVOLVE-BLOCK marks, or would
    still bind the name of a part to something else.
    """
    parts = tuple(parts)
    restored = dict(new)
    for file, names in _by_file(old, parts):
        before, after = _read(file, old[file]), _read(file, new.get(file, ""))
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


def _read(file: str, text: str) -> _Source:
    lines = _LINE_END.split(text)
    if not file.endswith(".py"):
        return _Source(lines, None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _Source(lines, [_statement(node) for node in ast.parse(text).body])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _Source(lines, None)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement at the top level, the part it belongs to, and its syntax tree as text."""

    node: ast.stmt
    part: str
    tree: str


def _statement(node: ast.stmt) -> _Statement:
    return _Statement(node, node.name if isinstance(node, _DEFINITIONS) else REST, ast.dump(node))


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Consecutive lines of a file: one definition, or the lines between two definitions."""

    part: str
    lines: Sequence[str]


class _Source:
    """A source file. ``statements`` is None if it is not Python or does not parse; it is then all `REST`."""

    def __init__(self, lines: Sequence[str], statements: Sequence[_Statement] | None) -> None:
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
            added = self._imports_added(new)
            kept = [each.tree for each in new._of(REST) if each not in added]
            shadowed = self._bound() & ({*new.parts(), *new._set_globally()} - {*self.parts(), *self._set_globally()})
            return [each.tree for each in self._of(REST)] == kept and not shadowed
        same = [each.tree for each in self._of(part)] == [each.tree for each in new._of(part)]
        return same and new._rebinding(part) <= self._rebinding(part)

    def put_back(self, new: _Source, parts: Sequence[str]) -> str:
        """The text of the new source with these parts of this one.

        If `REST` is one of them and has changed, it is the other way round: the text of this source with the other
        definitions of the new one, and with its new imports in front of the first of them.
        """
        if not (self._parsed and new._parsed):
            return "\n".join(self._lines)
        ours, theirs = self._chunks(), new._chunks()
        if REST not in parts or self.same(new, REST):
            return _text(_overlaid(theirs, ours, [part for part in parts if part != REST]))
        free = {*new.parts(), *self.parts()} - {REST, *parts}
        chunks = _overlaid(ours, theirs, free)
        place = next((place for place, chunk in enumerate(chunks) if chunk.part in free), None)
        imports = [line for each in self._imports_added(new) for line in new._span(each.node)]
        if imports and place is not None:
            chunks.insert(place, _Chunk(REST, [*imports, "", ""]))
        return _text(chunks)

    def _of(self, part: str) -> list[_Statement]:
        return [each for each in self._statements if each.part == part]

    def _bound(self) -> set[str]:
        """The names that `REST` binds."""
        return {name for each in self._of(REST) for name in _bound(each.node)}

    def _set_globally(self) -> set[str]:
        """The names that functions and classes bind outside of themselves, by ``global``."""
        return {name for each in self._statements if each.part != REST for name in _set_globally(each.node)}

    def _rebinding(self, part: str) -> set[str]:
        """Whatever may bind a definition's name to something else; star imports count if they come after it."""
        defined = max(place for place, each in enumerate(self._statements) if each.part == part)
        later = [each.node for each in self._statements[defined + 1 :] if each.part == REST]
        found = {f"import {module}" for node in later for module in _star_imports(node)}
        if part in self._bound():
            found.add("name")
        if part in self._set_globally():
            found.add("global")
        return found

    def _imports_added(self, new: _Source) -> list[_Statement]:
        """The imports of the new source that this one lacks and that bind none of its names."""
        known = {each.tree for each in self._of(REST)}
        taken = {"*", *self.parts(), *self._bound()}
        return [
            each
            for each in new._of(REST)
            if isinstance(each.node, _IMPORTS) and each.tree not in known and not taken & _bound(each.node)
        ]

    def _span(self, node: ast.stmt) -> Sequence[str]:
        decorators = node.decorator_list if isinstance(node, _DEFINITIONS) else []
        first = min([node.lineno, *(each.lineno for each in decorators)])
        return self._lines[first - 1 : node.end_lineno]

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
    """Insert a definition after the nearest one of ``before`` that is there, else before all, else at the end."""
    places = {chunk.part: place for place, chunk in enumerate(chunks) if chunk.part != REST}
    behind = next((places[part] for part in reversed(before) if part in places), None)
    if behind is not None:
        chunks[behind + 1 : behind + 1] = [_Chunk(REST, ["", ""]), new]
    else:
        place = min(places.values(), default=len(chunks))
        chunks[place:place] = [new, _Chunk(REST, ["", ""])]


def _text(chunks: Sequence[_Chunk]) -> str:
    return "\n".join(line for chunk in chunks for line in chunk.lines)


def _bound(node: ast.stmt) -> set[str]:
    """The names that a statement may bind, also in nested functions: an overestimate is safe."""
    names: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) if not isinstance(each.ctx, ast.Load):
                names.add(name)
            case ast.alias(name=name, asname=known_as):
                names.add(known_as or name.partition(".")[0])
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.MatchMapping(rest=str(name)):
                names.add(name)
    return names


def _set_globally(node: ast.stmt) -> set[str]:
    """The names that a definition declares ``global`` and may bind: an overestimate is safe."""
    declared = {name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names}
    return declared & _bound(node) if declared else declared


def _star_imports(node: ast.stmt) -> set[str]:
    """The modules from which a statement imports everything."""
    imports = (each for each in ast.walk(node) if isinstance(each, ast.ImportFrom))
    return {f"{'.' * each.level}{each.module or ''}" for each in imports if each.names[0].name == "*"}
