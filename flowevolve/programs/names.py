"""Statements of Python programs: the names that they bind and use, and the lines where they begin."""

from __future__ import annotations

import ast
import warnings

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
DYNAMIC = frozenset({"exec", "eval", "globals", "locals", "vars", "setattr", "NameError"})
"""A program with one of these may use names that it does not define, or define names that it does not bind."""


def parsed(source: str) -> ast.Module | None:
    """The syntax tree of a source; None if it is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def lines_in_texts(source: str) -> set[int]:
    """The numbers, from 0, of the lines that begin inside of a text; none if the source is not valid Python."""
    tree = parsed(source)
    texts = (each for each in ast.walk(tree) if isinstance(each, ast.Constant | ast.JoinedStr)) if tree else ()
    return {number for each in texts for number in range(each.lineno, each.end_lineno or 0)}


def first_line(node: ast.stmt) -> int:
    """The number of a statement's first line, which is that of its first decorator, if it has any."""
    decorators = node.decorator_list if isinstance(node, DEFINITIONS) else []
    return min([node.lineno, *(each.lineno for each in decorators)])


def bound_names(node: ast.stmt) -> set[str]:
    """The names that a statement binds in its own scope; a definition binds only its own name."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {each.asname or each.name.partition(".")[0] for each in aliases}
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}


def used_names(node: ast.stmt, *, annotations: bool = True) -> set[str]:
    """The names that a statement reads, at any depth. This is an overestimate. Without ``annotations``, the names in
    annotations are left out, since these may never be evaluated.
    """
    left: list[ast.AST] = [node]
    names: set[str] = set()
    while left:
        each = left.pop()
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            names.add(each.id)
        for field, value in ast.iter_fields(each):
            if annotations or field not in ("annotation", "returns"):
                children = value if isinstance(value, list) else [value]
                left += [child for child in children if isinstance(child, ast.AST)]
    return names


def names_of_arguments(tree: ast.Module) -> set[str]:
    """The names of the arguments of all functions in a program."""
    return {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}


def names_bound_within(node: ast.stmt) -> set[str]:
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


def names_set_globally(node: ast.stmt) -> set[str]:
    """The names that a definition declares ``global`` and may bind: an overestimate is safe."""
    declared = {name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names}
    return declared & names_bound_within(node) if declared else declared


def defines(source: str, name: str) -> bool:
    """Whether a program has a function or class of this name, outside of any other."""
    tree = parsed(source)
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return tree is not None and any(isinstance(node, definitions) and node.name == name for node in tree.body)


def may_bind(source: str, name: str) -> bool:
    """Whether a program may bind a name in whatever way: an overestimate is safe."""
    tree = parsed(source)
    return tree is None or any(
        name in names_bound_within(node) or star_imports(node) or used_names(node) & DYNAMIC for node in tree.body
    )


def star_imports(node: ast.stmt) -> set[str]:
    """The modules from which a statement imports everything."""
    imports = (each for each in ast.walk(node) if isinstance(each, ast.ImportFrom))
    return {f"{'.' * each.level}{each.module or ''}" for each in imports if each.names[0].name == "*"}


def tree_text(node: ast.stmt) -> str:
    """The syntax tree of a statement as a text. Two statements have equal texts only if at most docstrings differ.

    The docstrings are removed from the tree that is given, since a copy would take longer than all the rest.
    """
    for each in ast.walk(node):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and each.body:
            each.body[:1] = [] if is_docstring(each.body[0]) and len(each.body) > 1 else each.body[:1]
    return ast.dump(node)


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_assignment_of_names(node: ast.stmt) -> bool:
    """Whether a statement assigns to plain names only, and not to attributes or items."""
    match node:
        case ast.Assign(targets=targets):
            return all(map(_is_names, targets))
        case ast.AnnAssign(target=ast.Name()):
            return True
    return False


def _is_names(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_is_names, target.elts))
    return isinstance(target, ast.Name)
