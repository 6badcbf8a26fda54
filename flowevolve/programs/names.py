"""The names that statements of Python bind and use."""

from __future__ import annotations

import ast
import warnings


def parsed(source: str) -> ast.Module | None:
    """The syntax tree; None if it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def bound_names(node: ast.stmt) -> set[str]:
    """The names that a statement binds where it stands; a definition binds its own name only."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {each.asname or each.name.partition(".")[0] for each in aliases}
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}


def used_names(node: ast.stmt) -> set[str]:
    """The names that a statement reads, at any depth: an overestimate."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
