"""What a coder of the world `code` infers about a program: which names hold numbers, and which must be integers.

A name is taken to mean the same in all functions, and whatever is not plainly a number is taken to be none. In doubt a
change is therefore not made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_NUMERIC_CALLS = frozenset({"abs", "float", "int", "len", "round", "sum", "pow"})
_MATH = frozenset({"math", "statistics"})
_EXTREMES = frozenset({"min", "max"})
_NUMERIC_TYPES = frozenset({"float", "int"})
_SIZES = frozenset({"range", "islice", "zeros", "ones", "empty", "full", "reshape", "repeat", "combinations"})
"""Functions whose arguments are counts or shapes, and so must be integers."""
_SHAPED = frozenset({"zeros", "ones", "empty", "full", "reshape"})
_OF_NUMBERS_ONLY = (ast.Sub, ast.Div, ast.Pow, ast.FloorDiv)
_NO_NUMBERS = (
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.Dict,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.JoinedStr,
    ast.Compare,
    ast.BoolOp,
    ast.Lambda,
)
_ROUNDS = 4
"""Over how many assignments what is known of one name is carried on to others."""
_CHANGES_LISTS = frozenset(
    {"append", "extend", "insert", "remove", "pop", "popleft", "appendleft", "heappush", "heappop", "setdefault"}
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
Assignment = tuple[str, ast.expr]
"""A name and an expression that is assigned to it."""


@dataclass(frozen=True)
class Analysis:
    """What is known of the names and nodes of one program. Nodes are given by their `id`."""

    numbers: frozenset[str]
    """Names that hold numbers, and functions that return numbers."""
    integers: frozenset[int]
    """Expressions that must be integers: indices, counts, and what these are computed from."""
    fixed: frozenset[int]
    """Nodes inside of an index or an array's shape, where another constant or operator would break the program."""
    stops: frozenset[int]
    """Nodes inside of the condition of a ``while`` loop."""
    read: frozenset[str]
    """Names that are read other than to change the list that they hold."""
    awaited: frozenset[str]
    """Names in the conditions of ``while`` loops."""

    def is_number(self, node: ast.expr) -> bool:
        """Whether an expression is plainly a number."""
        return _is_number(node, self.numbers)

    def changes_lists(self, node: ast.AST) -> bool:
        """Whether a node adds to or takes from a list that is read elsewhere, so that it must be run exactly once."""
        changed = [each for each in map(_changed_list, ast.walk(node)) if each is not None]
        changed += [each.target for each in ast.walk(node) if isinstance(each, ast.AugAssign) and self._extends(each)]
        return any(not isinstance(each, ast.Name) or each.id in self.read for each in changed)

    def _extends(self, node: ast.AugAssign) -> bool:
        return isinstance(node.op, ast.Add) and not (self.is_number(node.target) or self.is_number(node.value))

    def ends_loops(self, node: ast.AST) -> bool:
        """Whether a node assigns to a name in the condition of a ``while`` loop."""
        return bool(self.awaited & {name for name, _ in assigned(node)})

    def may_be_real(self, node: ast.AST) -> bool:
        """Whether, as far as is known, a number at this node need not be an integer."""
        return id(node) not in self.integers


def analyse(tree: ast.Module) -> Analysis:
    nodes = list(ast.walk(tree))
    values = list(assigned(tree))
    tests = [node.test for node in nodes if isinstance(node, ast.While)]
    awaited = frozenset(name for test in tests for name in names(test))
    numbers, integers = _numbers(nodes, values), _integers(nodes, values)
    fixed, stops = _nodes_below(_fixed_expressions(nodes)), _nodes_below(tests)
    return Analysis(numbers, integers, fixed, stops, _read(nodes), awaited)


def called(call: ast.Call) -> str:
    """The name of the called function, without its module or object; empty if it has no name."""
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def names(node: ast.AST) -> frozenset[str]:
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _changed_list(node: ast.AST) -> ast.expr | None:
    """The list that a call adds to or takes from; None if the node is no such call."""
    if not isinstance(node, ast.Call) or called(node) not in _CHANGES_LISTS:
        return None
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    heap = called(node).startswith("heap")
    return node.args[0] if heap and node.args else owner


def _read(nodes: Sequence[ast.AST]) -> frozenset[str]:
    changed = {id(each) for each in map(_changed_list, nodes) if each is not None}
    loaded = [each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
    return frozenset(each.id for each in loaded if id(each) not in changed)


def _numbers(nodes: Sequence[ast.AST], values: Sequence[Assignment]) -> frozenset[str]:
    others = _not_numbers(nodes, values)
    found = {name for name, note in _annotated(nodes) if note in _NUMERIC_TYPES}
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, _OF_NUMBERS_ONLY):
            found |= {side.id for side in (node.left, node.right) if isinstance(side, ast.Name)}
        elif isinstance(node, ast.For | ast.comprehension):
            found |= _counters(node)
    for _ in range(_ROUNDS):
        known = frozenset(found - others)
        found |= {name for name, value in values if name not in known and _is_number(value, known)}
    return frozenset(found - others)


def _not_numbers(nodes: Sequence[ast.AST], values: Sequence[Assignment]) -> set[str]:
    """Names that don't hold numbers: they are indexed, iterated over, measured, hold attributes, a list or a text."""
    found = {name for name, value in values if _is_no_number(value)}
    for node in nodes:
        used: Iterable[ast.AST] = ()
        if isinstance(node, ast.Subscript | ast.Attribute):
            used = (node.value,)
        elif isinstance(node, ast.For | ast.comprehension):
            used = (node.iter,)
        elif isinstance(node, ast.Starred):
            used = (node.value,)
        elif isinstance(node, ast.Call) and called(node) in ("len", "sorted", "sum", "list", "set", "tuple"):
            used = node.args[:1]
        found |= {each.id for each in used if isinstance(each, ast.Name)}
    return found


def _annotated(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """Parameters, variables and functions with their annotated types, where these are plain names."""
    for node in nodes:
        if isinstance(node, ast.arg) and isinstance(node.annotation, ast.Name):
            yield node.arg, node.annotation.id
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if isinstance(node.annotation, ast.Name):
                yield node.target.id, node.annotation.id
        elif isinstance(node, _Function) and isinstance(node.returns, ast.Name):
            yield node.name, node.returns.id


def _counters(loop: ast.For | ast.comprehension) -> set[str]:
    """The names that count the iterations of a loop."""
    if not isinstance(loop.iter, ast.Call):
        return set()
    if called(loop.iter) == "range" and isinstance(loop.target, ast.Name):
        return {loop.target.id}
    if called(loop.iter) == "enumerate" and isinstance(loop.target, ast.Tuple):
        return {each.id for each in loop.target.elts[:1] if isinstance(each, ast.Name)}
    return set()


def assigned(tree: ast.AST) -> Iterator[Assignment]:
    """Names and the expressions assigned to them. A function's name goes with the expressions that it returns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
            if node.value is not None:
                yield node.target.id, node.value
        elif isinstance(node, _Function):
            yield from (
                (node.name, each.value) for each in ast.walk(node) if isinstance(each, ast.Return) and each.value
            )


def _is_no_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) not in (int, float)
    if isinstance(node, ast.BinOp):
        return _is_no_number(node.left) or _is_no_number(node.right)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice)
    if isinstance(node, ast.Call):
        return called(node) in ("list", "sorted", "set", "dict", "tuple", "str", "zip", "map", "range", "deque")
    return isinstance(node, _NO_NUMBERS)


def _is_number(node: ast.expr, numbers: frozenset[str]) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    if isinstance(node, ast.Name):
        return node.id in numbers
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and _is_number(node.operand, numbers)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        some = isinstance(node.op, _OF_NUMBERS_ONLY) or any(_is_number(side, numbers) for side in sides)
        return some and not any(_is_no_number(side) for side in sides)
    if isinstance(node, ast.IfExp):
        return _is_number(node.body, numbers) and _is_number(node.orelse, numbers)
    return isinstance(node, ast.Call) and _calls_number(node, numbers)


def _calls_number(call: ast.Call, numbers: frozenset[str]) -> bool:
    name = called(call)
    if isinstance(call.func, ast.Attribute):
        return isinstance(call.func.value, ast.Name) and call.func.value.id in _MATH
    if name in _EXTREMES:
        return not call.keywords and any(_is_number(each, numbers) for each in call.args)
    return name in _NUMERIC_CALLS or name in numbers


def _integers(nodes: Sequence[ast.AST], values: Sequence[Assignment]) -> frozenset[int]:
    """Expressions that must be integers: indices, counts, values of ``int`` names, and what they are computed from."""
    values = [*values, *_arguments_given(nodes)]
    roots: list[ast.expr] = [part for node in nodes for part in _integer_parts(node)]
    names = {name for name, note in _annotated(nodes) if note == "int"}
    integers = set[int]()
    for _ in range(_ROUNDS):
        parts = [part for root in roots for part in _computed(root)]
        integers |= {id(part) for part in parts}
        names |= {part.id for part in parts if isinstance(part, ast.Name)}
        names |= {called(part) for part in parts if isinstance(part, ast.Call)}
        roots = [value for name, value in values if name in names]
    return frozenset(integers)


def _integer_parts(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.Call) and called(node) in _SIZES:
        return node.args
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = (node.left, node.right)
        return [side for side in sides if any(isinstance(other, ast.List) for other in sides)]
    return []


def _computed(node: ast.expr) -> Iterator[ast.expr]:
    """An expression and those that it is computed from. Calls are followed only if they are of ``min`` or ``max``."""
    yield node
    if isinstance(node, ast.BinOp):
        parts: Iterable[ast.expr | None] = (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        parts = (node.operand,)
    elif isinstance(node, ast.IfExp):
        parts = (node.body, node.orelse)
    elif isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
    elif isinstance(node, ast.Tuple):
        parts = node.elts
    elif isinstance(node, ast.Call) and called(node) in _EXTREMES:
        parts = node.args
    else:
        parts = ()
    for part in parts:
        if part is not None:
            yield from _computed(part)


def _arguments_given(nodes: Sequence[ast.AST]) -> Iterator[Assignment]:
    """Parameters of the program's functions with the arguments of all calls, given by position or by name."""
    functions = [node for node in nodes if isinstance(node, _Function)]
    parameters = {node.name: [each.arg for each in node.args.args] for node in functions}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in parameters:
            yield from zip(parameters[node.func.id], node.args, strict=False)
            yield from ((each.arg, each.value) for each in node.keywords if each.arg)


def _fixed_expressions(nodes: Sequence[ast.AST]) -> list[ast.expr]:
    roots: list[ast.expr] = []
    for node in nodes:
        if isinstance(node, ast.Subscript):
            roots.append(node.slice)
        elif isinstance(node, ast.Call):
            roots += node.args if called(node) in _SHAPED else []
            roots += [each.value for each in node.keywords if each.arg in ("axis", "ndigits", "shape", "size")]
    return roots


def _nodes_below(roots: Iterable[ast.AST]) -> frozenset[int]:
    return frozenset(id(node) for root in roots for node in ast.walk(root))
