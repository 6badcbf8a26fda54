"""What a coder of the world `code` infers about a program: which names hold numbers, and which must be integers.

A name is taken to mean the same in all functions, and whatever is not plainly a number is taken to be none. So if there
is doubt, a change is not made.
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
_TAKE_MANY = frozenset({"len", "sorted", "sum", "list", "set", "tuple"})
"""Functions whose first argument holds several things."""
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
"""Over how many assignments what is known about one name is passed on to others."""
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
    """Names that are read for another purpose than to change the list that they hold."""
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
    if called(node).startswith("heap") and node.args:
        return node.args[0]
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _read(nodes: Sequence[ast.AST]) -> frozenset[str]:
    changed = {id(each) for each in map(_changed_list, nodes) if each is not None}
    loaded = [each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
    return frozenset(each.id for each in loaded if id(each) not in changed)


def _numbers(nodes: Sequence[ast.AST], values: Sequence[Assignment]) -> frozenset[str]:
    others = _not_numbers(nodes, values)
    found = {name for name, note in _annotated(nodes) if note in _NUMERIC_TYPES}
    for node in nodes:
        match node:
            case ast.BinOp(left, operator, right) if isinstance(operator, _OF_NUMBERS_ONLY):
                found |= {side.id for side in (left, right) if isinstance(side, ast.Name)}
            case ast.For(target, loop) | ast.comprehension(target, loop):
                found |= _counters(target, loop)
    for _ in range(_ROUNDS):
        known = frozenset(found - others)
        found |= {name for name, value in values if name not in known and _is_number(value, known)}
    return frozenset(found - others)


def _not_numbers(nodes: Sequence[ast.AST], values: Sequence[Assignment]) -> set[str]:
    """Names that don't hold numbers because they are indexed, iterated over, unpacked or measured, have attributes, or
    hold a list or a text.
    """
    found = {name for name, value in values if _is_no_number(value)}
    for node in nodes:
        match node:
            case ast.Subscript(ast.Name(name)) | ast.Attribute(ast.Name(name)) | ast.Starred(ast.Name(name)):
                found.add(name)
            case ast.For(iter=ast.Name(name)) | ast.comprehension(iter=ast.Name(name)):
                found.add(name)
            case ast.Call(args=[ast.Name(name), *_]) if called(node) in _TAKE_MANY:
                found.add(name)
    return found


def _annotated(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """Parameters, variables and functions with their annotated types, where these are plain names."""
    for node in nodes:
        match node:
            case ast.arg(name, ast.Name(note)) | ast.AnnAssign(ast.Name(name), ast.Name(note)):
                yield name, note
            case ast.FunctionDef(name, returns=ast.Name(note)) | ast.AsyncFunctionDef(name, returns=ast.Name(note)):
                yield name, note


def _counters(target: ast.expr, loop: ast.expr) -> set[str]:
    """The names that count the iterations of a loop, given its target and what it goes over."""
    match target:
        case ast.Name(name) if isinstance(loop, ast.Call) and called(loop) == "range":
            return {name}
        case ast.Tuple([ast.Name(name), *_]) if isinstance(loop, ast.Call) and called(loop) == "enumerate":
            return {name}
    return set()


def assigned(tree: ast.AST) -> Iterator[Assignment]:
    """Names and the expressions assigned to them. A function's name goes with the expressions that it returns."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets, value):
                yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(ast.Name(name), value=ast.expr() as value):
                yield name, value
            case ast.AugAssign(ast.Name(name), value=value) | ast.NamedExpr(ast.Name(name), value):
                yield name, value
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                yield from (
                    (name, each.value) for each in ast.walk(node) if isinstance(each, ast.Return) and each.value
                )


def _is_no_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value):
            return type(value) not in (int, float)
        case ast.BinOp(left, _, right):
            return _is_no_number(left) or _is_no_number(right)
        case ast.Subscript(_, place):
            return isinstance(place, ast.Slice)
        case ast.Call():
            return called(node) in ("list", "sorted", "set", "dict", "tuple", "str", "zip", "map", "range", "deque")
    return isinstance(node, _NO_NUMBERS)


def _is_number(node: ast.expr, numbers: frozenset[str]) -> bool:
    match node:
        case ast.Constant(value):
            return type(value) in (int, float)
        case ast.Name(name):
            return name in numbers
        case ast.UnaryOp(operator, operand):
            return not isinstance(operator, ast.Not) and _is_number(operand, numbers)
        case ast.BinOp(left, operator, right):
            some = isinstance(operator, _OF_NUMBERS_ONLY) or _is_number(left, numbers) or _is_number(right, numbers)
            return some and not (_is_no_number(left) or _is_no_number(right))
        case ast.IfExp(_, body, orelse):
            return _is_number(body, numbers) and _is_number(orelse, numbers)
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
    match node:
        case ast.Subscript(_, place):
            return [place]
        case ast.Call() if called(node) in _SIZES:
            return node.args
        case ast.BinOp(ast.List() as left, ast.Mult(), right) | ast.BinOp(left, ast.Mult(), ast.List() as right):
            return [left, right]
    return []


def _computed(node: ast.expr) -> Iterator[ast.expr]:
    """An expression and those that it is computed from. Of calls, only those of ``min`` and ``max`` are followed."""
    yield node
    parts: Iterable[ast.expr | None] = ()
    match node:
        case ast.BinOp(left, _, right) | ast.IfExp(_, left, right):
            parts = (left, right)
        case ast.UnaryOp(_, operand):
            parts = (operand,)
        case ast.Slice():
            parts = (node.lower, node.upper, node.step)
        case ast.Tuple():
            parts = node.elts
        case ast.Call() if called(node) in _EXTREMES:
            parts = node.args
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
