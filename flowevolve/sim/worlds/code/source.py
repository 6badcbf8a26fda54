"""A Python program as the world `code` edits it: its text, its syntax tree, and the places that may change."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby
from typing import TypeVar

from flowevolve.programs.blocks import evolvable_lines
from flowevolve.programs.names import DEFINITIONS, first_line
from flowevolve.programs.parts import REST
from flowevolve.sim.worlds.code.analysis import Analysis, analyse
from flowevolve.sim.worlds.code.names import unbound

N = TypeVar("N", bound=ast.AST)
Place = tuple[int, int]
"""Where a node begins and ends in the text, in characters."""


def parse(text: str, kept: Collection[str] = ()) -> Source | None:
    """Parse a program; None if the text is not Python.

    The ``kept`` parts, named as in `flowevolve.programs.parts`, may not change.
    """
    return _parse(text, frozenset(kept))


@lru_cache(maxsize=128)
def _parse(text: str, kept: frozenset[str]) -> Source | None:
    """The cached part of `parse`: one program is the parent of many, and need not be parsed for each of them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Source(text, ast.parse(text), kept)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True)
class Source:
    """One file of a program. All that lies in its evolve blocks and not in a ``kept`` part may change."""

    text: str
    tree: ast.Module
    kept: frozenset[str] = frozenset()
    lines: Sequence[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", self.text.split("\n"))

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line) + 1)
        return starts

    @cached_property
    def _open(self) -> frozenset[int]:
        """The numbers of the lines that may change, counted from 1."""
        marked = {number + 1 for block in evolvable_lines(self.text) for number in block}
        spans = [(part_of(node), first_line(node), last_line(node)) for node in self.tree.body]
        defined = {number for part, first, last in spans if part != REST for number in range(first, last + 1)}
        kept = {number for part, first, last in spans if part in self.kept for number in range(first, last + 1)}
        return frozenset((marked & defined if REST in self.kept else marked) - kept)

    @cached_property
    def analysis(self) -> Analysis:
        return analyse(self.tree)

    @cached_property
    def unbound(self) -> frozenset[str]:
        """Names that the program reads and that have no value."""
        return unbound(self.tree)

    @cached_property
    def _frozen(self) -> set[int]:
        """Nodes, by `id`, whose text must not change: the insides of f-strings, and annotations."""
        roots: list[ast.AST] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.JoinedStr):
                roots.append(node)
            roots += [part for part in (getattr(node, "annotation", None), getattr(node, "returns", None)) if part]
        return {id(node) for root in roots for node in ast.walk(root)}

    def may_change(self, node: ast.expr | ast.stmt) -> bool:
        return all(number in self._open for number in range(node.lineno, last_line(node) + 1))

    def nodes(self, kind: type[N], within: ast.AST | None = None) -> list[N]:
        """The expressions or statements of one type that may change, in the order of the text."""
        found = [node for node in ast.walk(within or self.tree) if isinstance(node, kind)]
        return sorted((node for node in found if self._is_open(node)), key=self.place)

    def _is_open(self, node: ast.AST) -> bool:
        return isinstance(node, ast.expr | ast.stmt) and id(node) not in self._frozen and self.may_change(node)

    def place(self, node: ast.AST) -> Place:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """The place of a line and column in characters. Columns of syntax trees count bytes."""
        text = self.lines[line - 1]
        return self._starts[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))

    def said(self, node: ast.AST) -> str:
        start, end = self.place(node)
        return self.text[start:end]

    def lines_of(self, node: ast.stmt) -> Sequence[str]:
        return self.lines[first_line(node) - 1 : last_line(node)]

    def with_texts(self, texts: Iterable[tuple[Place, str]]) -> str:
        """The program's text with new texts in some places, which must not overlap."""
        changed = self.text
        for (start, end), new in sorted(texts, reverse=True):
            changed = changed[:start] + new + changed[end:]
        return changed

    def with_lines(self, first: int, last: int, lines: Sequence[str]) -> str:
        """The program's text with new lines in place of those from ``first`` to ``last``, counted from 1."""
        return "\n".join([*self.lines[: first - 1], *lines, *self.lines[last:]])

    def blocks(self) -> Iterator[Sequence[ast.stmt]]:
        """Runs of consecutive statements that may change and that each have lines of their own."""
        for node in ast.walk(self.tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    yield from (list(run) for usable, run in groupby(block, self._has_own_lines) if usable)

    def _has_own_lines(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.stmt) or not self.may_change(node):
            return False
        start, end = self.place(node)
        first, last = node.lineno, node.end_lineno or node.lineno
        before = self.text[self._starts[first - 1] : start]
        after = self.text[end : self._starts[last] - 1].strip()
        return not before.strip() and (not after or after.startswith("#"))


def part_of(node: ast.stmt) -> str:
    """The name of the part of a program that a top-level statement belongs to."""
    return node.name if isinstance(node, DEFINITIONS) else REST


def last_line(node: ast.expr | ast.stmt) -> int:
    return node.end_lineno or node.lineno


def number_of(node: ast.AST) -> float | None:
    """The value of a numeric constant; None for all other nodes, among them truth values."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def numbers(node: ast.AST) -> list[ast.Constant]:
    """The numeric constants below a node."""
    return [each for each in ast.walk(node) if isinstance(each, ast.Constant) and number_of(each) is not None]
