"""How the world `code` changes expressions: their operators, the functions they call, and terms added to them."""

from __future__ import annotations

import ast
import random
import re

from flowevolve.sim.worlds.code.analysis import called
from flowevolve.sim.worlds.code.source import Source

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
"""Groups of functions that can replace each other."""
_TABLES, _SIZES = 0.4, (2, 3, 4, 6, 8, 12, 16, 32)
"""How often a number from a table is added to an expression, and the lengths that tables may have."""
_TERMS = (
    "({e} + {c} * {v})",
    "({e} - {c} * {v})",
    "({e} * (1 + {c} * {v}))",
    "({e} / (1 + {c} * abs({v})))",
    "max({e}, {c} * {v})",
    "min({e}, {v})",
)


def change_operators(source: Source, step: float, rng: random.Random) -> str | None:
    """Replace one operator between numbers, or swap its operands; never in an index or in the condition of a loop."""
    analysis = source.analysis
    found = [(node, node.left, node.right) for node in source.nodes(ast.BinOp) if analysis.is_number(node)] + [
        (node, node.left, node.comparators[0])
        for node in source.nodes(ast.Compare)
        if len(node.ops) == 1 and not isinstance(node.ops[0], ast.In | ast.NotIn | ast.Is | ast.IsNot)
    ]
    left_alone = analysis.fixed | analysis.stops
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
    others = [each for each in alike if each != "/" or analysis.may_be_real(node)]
    return source.with_texts([(operator.span(), rng.choice(others))]) if others else None


def change_calls(source: Source, step: float, rng: random.Random) -> str | None:
    """Replace a call by that of a similar function, or reverse the order of something sorted."""
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
    """Add to an expression a term with a local variable, or, inside a loop, a number that depends on the iteration."""
    if rng.random() < _TABLES and (changed := _with_table(source, step, rng)) is not None:
        return changed
    places: list[tuple[ast.expr, list[str]]] = []
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        given = _numbers_given(source, function)
        for node in _growing(source, function):
            names = sorted({name for name, line in given if line < node.lineno})
            if names:
                places.append((node, names))
    if not places:
        return None
    node, names = rng.choice(places)
    coefficient = f"{10 ** rng.uniform(-3, 0):.3g}"
    term = rng.choice(_TERMS).format(e=source.said(node), c=coefficient, v=rng.choice(names))
    return source.with_texts([(source.place(node), term)])


def _with_table(source: Source, step: float, rng: random.Random) -> str | None:
    """Add a number from a table to an expression in a loop. Half of the tables hold zeros, which have no effect until
    a later change of their numbers.
    """
    places = [
        (node, index)
        for loop in ast.walk(source.tree)
        if isinstance(loop, ast.For) and (index := _index(loop)) is not None
        for node in source.nodes(ast.BinOp, loop)
        if node.lineno > loop.lineno and source.analysis.is_number(node) and source.analysis.may_be_real(node)
    ]
    if not places:
        return None
    node, index = rng.choice(places)
    scale, size = rng.choice((0.0, step)), rng.choice(_SIZES)
    table = [float(f"{scale * rng.gauss(0, 1):.3g}") + 0.0 for _ in range(size)]  # no -0.0
    return source.with_texts([(source.place(node), f"({source.said(node)} + {table}[{index} % {size}])")])


def _index(loop: ast.For) -> str | None:
    """The variable that counts a loop's iterations, if there is one."""
    match loop.target, loop.iter:
        case ast.Name(name), ast.Call(ast.Name("range")):
            return None if name == "_" else name
        case ast.Tuple([ast.Name(name), *_]), ast.Call(ast.Name("enumerate")):
            return None if name == "_" else name
    return None


def _growing(source: Source, function: ast.FunctionDef) -> list[ast.expr]:
    """The expressions of a function that terms can be added to: computed, assigned or returned numbers that need not be
    integers.
    """
    given: list[ast.Assign | ast.Return] = [*source.nodes(ast.Assign, function), *source.nodes(ast.Return, function)]
    values = [statement.value for statement in given]
    taken = [value for value in values if isinstance(value, ast.Name | ast.Call)]
    looked_up = [
        each.value
        for each in source.nodes(ast.Assign, function)
        if isinstance(each.value, ast.Subscript) and source.analysis.is_number(each.targets[0])
    ]
    numbers = [node for node in (*source.nodes(ast.BinOp, function), *taken) if source.analysis.is_number(node)]
    return [node for node in (*numbers, *looked_up) if source.analysis.may_be_real(node)]


def _numbers_given(source: Source, function: ast.FunctionDef) -> list[tuple[str, int]]:
    """The parameters and variables of a function that hold numbers, with the lines where they get a value."""
    parameters = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
    stored = [
        (each.id, each.lineno)
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]
    return [pair for pair in [*((name, 0) for name in parameters), *stored] if pair[0] in source.analysis.numbers]
