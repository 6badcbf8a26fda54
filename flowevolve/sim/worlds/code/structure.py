"""How the world `code` changes the structure of a program: it moves, doubles or leaves out statements."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence

from flowevolve.programs.names import first_line
from flowevolve.sim.worlds.code.analysis import names
from flowevolve.sim.worlds.code.source import Source, last_line

_KEPT = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Return)
"""Statements that are never left out or doubled, since hardly a program works after that."""


def change_statements(source: Source, step: float, rng: random.Random) -> str | None:
    """Double or leave out one statement, or swap two that follow each other."""
    blocks = [block for block in map(_moveable, source.blocks()) if len(block) > 1]
    if not blocks:
        return None
    block = rng.choice(blocks)
    place = rng.randrange(len(block) - 1)
    one, other = block[place], block[place + 1]
    kind = rng.choice(("swap", "double", "leave"))
    if kind == "swap" and not isinstance(other, ast.Return):
        if names(one) & names(other) and any(map(source.analysis.changes_lists, (one, other))):
            return None
        between = source.lines[last_line(one) : first_line(other) - 1]
        lines = [*source.lines_of(other), *between, *source.lines_of(one)]
        return source.with_lines(first_line(one), last_line(other), lines)
    if isinstance(one, _KEPT) or source.analysis.changes_lists(one) or source.analysis.ends_loops(one):
        return None
    if kind == "double":
        return source.with_lines(first_line(one), last_line(one), [*source.lines_of(one), *source.lines_of(one)])
    return source.with_lines(first_line(one), last_line(one), [])


def _moveable(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a block except docstrings and other bare constants, which have no effect."""
    return [each for each in block if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
