"""How the world `code` changes expressions: operators, called functions, and terms that are added."""

from __future__ import annotations

import ast
import random
import re

from flowevolve.sim.code_sense import called
from flowevolve.sim.code_source import Source

_ARITHMETIC = {"+": "-*", "-": "+*", "*": "/+", "/": "*-", "//": "/", "%": "-", "**": "*"}
_COMPARISONS = {"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",)}
_OPERATOR = re.compile(r"\*\*|//|<=|>=|==|!=|[-+*/%<>]")
_ALIKE = (
    ("min", "max"),
    ("argmin", "argmax"),
    ("minimum", "maximum"),
    ("sin", "cos"),
    ("floor", "ceil"),
    ("sqrt", "log1p", "tanh"),
    ("any", "all"),
    ("mean", "median"),
)
"""Functions that stand where the others of a group may stand, too."""
_TABLES, _SIZES = 0.4, (2, 3, 4, 6, 8, 12, 16, 32)
"""How often what is added to an expression is a number from a table, and how long tables are."""
_TERMS = (
    "({e} + {c} * {v})",
    "({e} - {c} * {v})",
    "({e} * (1 + {c} * {v}))",
    "({e} / (1 + {c} * abs({v})))",
    "max({e}, {c} * {v})",
    "min({e}, {v})",
)


def change_operators(source: Source, step: float, rng: random.Random) -> str | None:
    """One operator between numbers, or the operands of one in the other order; not in an index or what ends a loop."""
    sense = source.sense
    found = [(node, node.left, node.right) for node in source.nodes(ast.BinOp) if sense.is_number(node)] + [
        (node, node.left, node.comparators[0])
        for node in source.nodes(ast.Compare)
        if len(node.ops) == 1 and not isinstance(node.ops[0], ast.In | ast.NotIn | ast.Is | ast.IsNot)
    ]
    left_alone = sense.fixed | sense.stops
    found = [each for each in found if id(each[0]) not in left_alone]
    if not found:
        return None
    node, left, right = rng.choice(found)
    if isinstance(node, ast.BinOp) and rng.random() < 0.2:
        return source.with_texts([(source.place(left), source.said(right)), (source.place(right), source.said(left))])
    start, end = source.place(left)[1], source.place(right)[0]
    operator = _OPERATOR.search(source.text, start, end)
    if operator is None:
        return None
    alike = _ARITHMETIC.get(operator[0]) or _COMPARISONS.get(operator[0]) or ()
    others = [each for each in alike if each != "/" or sense.may_be_real(node)]
    return source.with_texts([(operator.span(), rng.choice(others))]) if others else None


def change_calls(source: Source, step: float, rng: random.Random) -> str | None:
    """A function for one like it, or the order of what is sorted."""
    swaps: list[tuple[tuple[int, int], str]] = []
    for call in source.nodes(ast.Call):
        name = called(call)
        _, end = source.place(call.func)
        for group in _ALIKE:
            if name in group:
                swaps += [((end - len(name), end), other) for other in group if other != name]
        if name in ("sorted", "sort"):
            swaps.append(_reversed(source, call))
    return source.with_texts([rng.choice(swaps)]) if swaps else None


def _reversed(source: Source, call: ast.Call) -> tuple[tuple[int, int], str]:
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "reverse"), None)
    if given is not None:
        return source.place(given), f"not ({source.said(given)})"
    end = source.place(call)[1] - 1
    return (end, end), ", reverse=True" if call.args or call.keywords else "reverse=True"


def grow(source: Source, step: float, rng: random.Random) -> str | None:
    """An expression with a term of a local variable, or inside of a loop with a number for each of its rounds."""
    if rng.random() < _TABLES and (changed := _with_table(source, step, rng)) is not None:
        return changed
    places: list[tuple[ast.expr, list[str]]] = []
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in _growing(source, function):
            names = _names_before(source, function, node)
            if names:
                places.append((node, names))
    if not places:
        return None
    node, names = rng.choice(places)
    coefficient = f"{10 ** rng.uniform(-3, 0):.3g}"
    term = rng.choice(_TERMS).format(e=source.said(node), c=coefficient, v=rng.choice(names))
    return source.with_texts([(source.place(node), term)])


def _with_table(source: Source, step: float, rng: random.Random) -> str | None:
    """Half of the tables hold zeros: they change nothing before their numbers change."""
    places = [
        (node, index)
        for loop in ast.walk(source.tree)
        if isinstance(loop, ast.For) and (index := _index(loop)) is not None
        for node in source.nodes(ast.BinOp, loop)
        if node.lineno > loop.lineno and source.sense.is_number(node) and source.sense.may_be_real(node)
    ]
    if not places:
        return None
    node, index = rng.choice(places)
    scale, size = rng.choice((0.0, step)), rng.choice(_SIZES)
    table = [float(f"{scale * rng.gauss(0, 1):.3g}") + 0.0 for _ in range(size)]  # no -0.0
    return source.with_texts([(source.place(node), f"({source.said(node)} + {table}[{index} % {size}])")])


def _index(loop: ast.For) -> str | None:
    """The variable that counts a loop's rounds."""
    target, call = loop.target, loop.iter
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    if call.func.id == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    elif call.func.id != "range":
        return None
    return target.id if isinstance(target, ast.Name) and target.id != "_" else None


def _growing(source: Source, function: ast.FunctionDef) -> list[ast.expr]:
    """What is computed with, and what is assigned or returned, if it is a number that need not be whole."""
    given: list[ast.Assign | ast.Return] = [*source.nodes(ast.Assign, function), *source.nodes(ast.Return, function)]
    values = [statement.value for statement in given]
    taken = [value for value in values if isinstance(value, ast.Name | ast.Call)]
    looked_up = [
        each.value
        for each in source.nodes(ast.Assign, function)
        if isinstance(each.value, ast.Subscript) and source.sense.is_number(each.targets[0])
    ]
    numbers = [node for node in (*source.nodes(ast.BinOp, function), *taken) if source.sense.is_number(node)]
    return [node for node in (*numbers, *looked_up) if source.sense.may_be_real(node)]


def _names_before(source: Source, function: ast.FunctionDef, node: ast.expr) -> list[str]:
    """Numbers: parameters of the function, and variables that were given a value on an earlier line."""
    parameters = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
    stored = [
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each.lineno < node.lineno
    ]
    return sorted({*parameters, *stored} & source.sense.numbers)
