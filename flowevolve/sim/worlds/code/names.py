"""Finds the undefined names that a program reads, which a coder would notice before handing the program in."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Sequence

_ALWAYS = frozenset(dir(builtins)) | {"__file__"}


def unbound(tree: ast.Module) -> frozenset[str]:
    """The names that a program reads without a value, going by the order of its text.

    A value that is assigned in one branch counts as assigned, and the bodies of functions run after all else. For a
    program with a wildcard import the result is empty, since its names can't be known.
    """
    if any(alias.name == "*" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names):
        return frozenset()
    return _Scope(_ALWAYS).run(tree.body)


class _Scope:
    """Goes through one scope in the order in which it runs, and then through the functions inside of it."""

    def __init__(self, bound: Iterable[str]) -> None:
        self._unbound: set[str] = set()
        self._bound = set(bound)
        self._inside: list[tuple[ast.arguments, Sequence[ast.AST]]] = []

    def run(self, nodes: Iterable[ast.AST]) -> frozenset[str]:
        self._visit(*nodes)
        for arguments, body in self._inside:
            parameters = {each.arg for each in ast.walk(arguments) if isinstance(each, ast.arg)}
            self._unbound |= _Scope(self._bound | parameters).run(body)
        return frozenset(self._unbound)

    def _visit(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self._read(node)

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                self._bound.add(name)
            case ast.Name(id=name):
                self._unbound |= {name} - self._bound
            case ast.Assign():
                self._visit(node.value, *node.targets)
            case ast.AnnAssign():
                if node.value is not None:
                    self._visit(node.value, node.target)
            case ast.AugAssign(target=ast.Name(id=name)):
                self._visit(ast.Name(name, ast.Load()), node.value)
            case ast.NamedExpr():
                self._visit(node.value, node.target)
            case ast.For() | ast.AsyncFor():
                self._visit(node.iter, node.target, *node.body, *node.orelse)
            case ast.Import() | ast.ImportFrom():
                self._bound |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                self._comprehend(node.generators, node.elt)
            case ast.DictComp():
                self._comprehend(node.generators, node.key, node.value)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._visit(*node.decorator_list, *node.args.defaults, *node.args.kw_defaults)
                self._bound.add(node.name)
                self._inside.append((node.args, node.body))
            case ast.Lambda():
                self._visit(*node.args.defaults, *node.args.kw_defaults)
                self._inside.append((node.args, [node.body]))
            case _:
                self._bound |= {name for name in [getattr(node, "name", None)] if isinstance(name, str)}
                self._visit(*ast.iter_child_nodes(node))

    def _comprehend(self, generators: Sequence[ast.comprehension], *made: ast.expr) -> None:
        """Visit a comprehension: its element is read last, and its names are not known outside of it."""
        before = set(self._bound)
        for each in generators:
            self._visit(each.iter, each.target, *each.ifs)
        self._visit(*made)
        self._bound = before
