"""Small changes of meaning in the functions of a module, each a replacement of one node of its syntax tree.

Texts, assertions, messages of exceptions, `__repr__` and annotations stay as they are, because no test should notice a
change of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
UNNOTICED = ("__repr__", "__str__")
"""Functions whose results are only for reading."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """A module of the product."""

    module: str
    path: str
    tree: ast.Module

    def compiled(self, change: Change) -> CodeType:
        """The module's code with the change in it."""
        _Replacement(change.old, change.new).visit(self.tree)
        try:
            return compile(self.tree, self.path, "exec")
        finally:
            _Replacement(change.new, change.old).visit(self.tree)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A node of a statement that begins in ``line``, and what replaces it."""

    source: Source
    function: str
    line: int
    old: ast.AST
    new: ast.AST

    @property
    def place(self) -> tuple[str, int]:
        return self.source.module, self.line

    @property
    def old_text(self) -> str:
        return _shown(self.old)

    @property
    def new_text(self) -> str:
        return _shown(self.new)

    def __str__(self) -> str:
        return f"{self.source.path}:{self.line} {self.function}: {self.old_text}  →  {self.new_text}"


class _Replacement(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._old:
            return self._new
        self.generic_visit(node)
        return node


def changes_in(source: Source) -> Iterator[Change]:
    """Every change of the module, in the order of its text."""
    for name, function in functions(source.tree):
        for statement, old in _nodes(function):
            for new in _changed(old):
                ast.copy_location(new, old)
                ast.fix_missing_locations(new)
                yield Change(source, name, statement.lineno, old, new)


def functions(tree: ast.Module | ast.ClassDef, within: str = "") -> Iterator[tuple[str, Function]]:
    """The functions and methods of a module by their qualified names, without nested ones."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{within}{node.name}.")
        elif isinstance(node, Function) and node.name not in UNNOTICED:
            yield within + node.name, node


def _nodes(function: Function) -> Iterator[tuple[ast.stmt, ast.AST]]:
    """The nodes that may be changed, each with the statement that it belongs to."""

    def inside(node: ast.AST, statement: ast.stmt) -> Iterator[tuple[ast.stmt, ast.AST]]:
        if isinstance(node, ast.stmt):
            statement = node
        if _is_for_reading(node):
            return
        yield statement, node
        if isinstance(node, ast.Raise):
            return  # only people read its message, but tests should notice that it is raised
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from inside(child, statement)

    for statement in function.body:
        yield from inside(statement, statement)


def _is_for_reading(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.JoinedStr() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="logger" | "log" | "warnings")))):
            return True
    return False


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left=left, ops=[operator, *others], comparators=compared):
            yield ast.Compare(left, [COMPARISONS[type(operator)](), *others], compared)
        case ast.BoolOp(op=ast.And(), values=values):
            yield ast.BoolOp(ast.Or(), values)
        case ast.BoolOp(op=ast.Or(), values=values):
            yield ast.BoolOp(ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            yield ast.BinOp(left, OPERATORS[type(op)](), right)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in FUNCTIONS:
            yield ast.Call(ast.Name(FUNCTIONS[name], ast.Load()), args, keywords)
        case ast.If(test=test, body=body, orelse=orelse) if _is_plain(test):
            yield ast.If(_negated(test), body, orelse)
        case ast.IfExp(test=test, body=value, orelse=other) if _is_plain(test):
            yield ast.IfExp(_negated(test), value, other)
        case ast.comprehension(target=target, iter=each, ifs=[_, *others], is_async=is_async):
            yield ast.comprehension(target, each, others, is_async)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in OPERATORS:
            yield ast.AugAssign(target, OPERATORS[type(op)](), value)
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign():
            yield ast.Pass()
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Delete() | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()


def _is_plain(test: ast.expr) -> bool:
    """Whether a condition has to be negated as a whole, because no change inside of it does the same."""
    return not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp)


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _shown(node: ast.AST) -> str:
    """The first line of a node's code, shortened if it is long."""
    line = ast.unparse(node).strip().partition("\n")[0]
    return line if len(line) <= 100 else line[:99] + "…"
