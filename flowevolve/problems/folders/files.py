"""Reads what the files of a problem folder say, without running them."""

from __future__ import annotations

import ast
from pathlib import Path

from flowevolve._util.errors import InputError
from flowevolve.programs.evaluator import read_text

_TEXT_METHODS = {"strip", "lstrip", "rstrip"}
_MOST = 10_000
"""The most characters of a folder's README that are used as a statement."""


def the_program(folder: Path, stem: str) -> Path:
    """The one file of this name, whatever its suffix. If there are several, the one in Python.

    Raises:
        InputError: if there is no such file, or it is unclear which one is meant.
    """
    found = sorted(path for path in folder.glob(f"{stem}.*") if path.is_file())
    python = [path for path in found if path.suffix == ".py"]
    if len(python or found) == 1:
        return (python or found)[0]
    if not found:
        raise InputError(f"{folder}: there is no {stem}.py to start from, nor {stem}.* in another language")
    raise InputError(
        f"{folder}: several files could be the program: {', '.join(path.name for path in found)}; keep one"
    )


def parsed(file: Path) -> ast.Module:
    """Raises: InputError if the file is not valid Python."""
    try:
        return ast.parse(read_text(file))
    except (SyntaxError, ValueError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        raise InputError(f"{file}: not valid Python: {error.args[0]}{line}") from None


def defined(module: ast.Module) -> set[str] | None:
    """The names defined at the top level of a module, branches and handlers included; None if it imports ``*``."""
    names: set[str] = set()
    for node in _statements(module.body):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                names.add(name)
            case ast.Import(imported) | ast.ImportFrom(names=imported):
                names |= {alias.asname or alias.name.partition(".")[0] for alias in imported}
            case ast.Assign(targets):
                names |= {inner.id for each in targets for inner in ast.walk(each) if isinstance(inner, ast.Name)}
            case ast.AnnAssign(ast.Name(name)):
                names.add(name)
    return None if "*" in names else names


def texts(module: ast.Module) -> dict[str, str]:
    """The constants at the top level of a module that are texts, f-strings over earlier constants included."""
    values: dict[str, object] = {}
    for node in module.body:
        match node:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), value=ast.expr() as value):
                values[name] = constant(value, values)
    return {name: value for name, value in values.items() if isinstance(value, str)}


def constant(node: ast.expr, values: dict[str, object]) -> object:
    """The value of an expression of constants; None for any other expression."""
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return values.get(name)
        case ast.UnaryOp(ast.USub(), operand):
            number = constant(operand, values)
            return -number if isinstance(number, int | float) else None
        case ast.BinOp(left, ast.Add(), right):
            first, second = constant(left, values), constant(right, values)
            return first + second if isinstance(first, str) and isinstance(second, str) else None
        case ast.Call(ast.Attribute(inner, method), []) if method in _TEXT_METHODS:
            text = constant(inner, values)
            return getattr(text, method)() if isinstance(text, str) else None
        case ast.JoinedStr(parts):
            pieces = [_piece(part, values) for part in parts]
            return None if None in pieces else "".join(piece for piece in pieces if piece is not None)
    return None


def readme(folder: Path) -> str:
    """What a folder's README says, if there is one."""
    found = next((path for path in sorted(folder.glob("README*")) if path.is_file()), None)
    return "" if found is None else read_text(found)[:_MOST]


def _piece(part: ast.expr, values: dict[str, object]) -> str | None:
    if not isinstance(part, ast.FormattedValue):
        value = constant(part, values)
        return value if isinstance(value, str) else None
    value = constant(part.value, values)
    if not isinstance(value, str | int | float) or part.conversion != -1:
        return None
    spec = "" if part.format_spec is None else constant(part.format_spec, values)
    try:
        return format(value, str(spec))
    except ValueError:
        return None


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that are executed with a module, those nested in others included."""
    found: list[ast.stmt] = []
    for node in body:
        found.append(node)
        if isinstance(node, ast.If | ast.Try | ast.TryStar | ast.With | ast.For | ast.While):
            for part in ("body", "orelse", "finalbody"):
                found += _statements(getattr(node, part, []))
        if isinstance(node, ast.Try | ast.TryStar):
            found += [inner for handler in node.handlers for inner in _statements(handler.body)]
        if isinstance(node, ast.Match):
            found += [inner for case in node.cases for inner in _statements(case.body)]
    return found
