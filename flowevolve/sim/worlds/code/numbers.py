"""How the world `code` changes numbers: single constants, lists of constants, and how often loops run."""

from __future__ import annotations

import ast
import random
import re

from flowevolve.sim.worlds.code.analysis import called, names
from flowevolve.sim.worlds.code.source import Place, Source, number_of, numbers

_VECTOR = 3
"""A list of at least this many numbers is a vector, which changes as a whole or in parts."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")


def shifted(value: float, step: float, rng: random.Random) -> str:
    """Another number near this one, as Python text: moved by a normal deviate times ``step`` times its size.

    An integer moves by at least 1, and one above 0 stays above 0, as it may be a count.
    """
    if isinstance(value, int):
        distance = max(1, round(abs(value) * step * abs(rng.gauss(0, 1))))
        changed: float = value + rng.choice((-1, 1)) * distance
        changed = value + distance if changed < 1 <= value else changed
    else:
        changed = float(f"{value + (abs(value) or 1.0) * step * rng.gauss(0, 1):.12g}")
    return repr(changed) if changed >= 0 else f"({changed!r})"


def change_constants(source: Source, step: float, rng: random.Random) -> str | None:
    """Change one single number, or one, some or all numbers of a vector."""
    fixed = source.analysis.fixed
    lists = source.nodes(ast.List) + source.nodes(ast.Tuple)
    vectors = [[number for number in numbers(node) if id(number) not in fixed] for node in lists]
    vectors = [vector for vector in vectors if len(vector) >= _VECTOR]
    others = fixed | {id(number) for vector in vectors for number in vector}
    single = [node for node in source.nodes(ast.Constant) if number_of(node) is not None and id(node) not in others]
    if vectors and (not single or rng.random() < 0.5):
        vector = rng.choice(vectors)
        wanted = rng.choice((1, 1, 2, max(2, len(vector) // 4), len(vector)))
        chosen = rng.sample(vector, min(wanted, len(vector)))
    elif single:
        chosen = [rng.choice(single)]
    else:
        return None
    values = [(source.place(node), value) for node in chosen if (value := number_of(node)) is not None]
    return source.with_texts([(place, shifted(value, step, rng)) for place, value in values])


def change_text_constant(text: str, lines: range, step: float, rng: random.Random) -> str | None:
    """Change one number of a program that is not Python, on one of these lines (counted from 0)."""
    every = text.split("\n")
    starts = [sum(len(line) + 1 for line in every[:number]) for number in lines]
    places: list[Place] = [
        (start + found.start(), start + found.end())
        for start, number in zip(starts, lines, strict=True)
        for found in _NUMBER.finditer(every[number])
    ]
    if not places:
        return None
    start, end = rng.choice(places)
    said = text[start:end]
    value = int(said) if said.isdigit() else float(said)
    return text[:start] + shifted(value, step, rng).strip("()") + text[end:]


def change_loops(source: Source, step: float, rng: random.Random) -> str | None:
    """Change how often a loop over a range runs, or put a statement into a new loop."""
    ranges = [last for loop in source.nodes(ast.For) for last in _rounds(source, loop)]
    if not ranges or rng.random() < 0.4:
        return _another_pass(source, rng)
    last = rng.choice(ranges)
    said = source.said(last)
    if isinstance(last, ast.Constant) and isinstance(last.value, int):
        count = last.value
        new = str(rng.choice((count + 1, max(1, count - 1), 2 * count, max(1, count // 2), 4 * count)))
    else:
        new = rng.choice(("{} + 1", "max(1, {} - 1)", "2 * ({})", "max(1, ({}) // 2)")).format(said)
    return source.with_texts([(source.place(last), new)])


def _rounds(source: Source, loop: ast.For) -> list[ast.expr]:
    """The end of the range that a loop goes over; empty if the loop fills lists or uses its variable as an index."""
    call = loop.iter
    if not isinstance(call, ast.Call) or called(call) != "range" or len(call.args) not in (1, 2):
        return []
    if source.analysis.changes_lists(loop):
        return []
    places = [each.slice for each in ast.walk(loop) if isinstance(each, ast.Subscript)]
    bounded = [place for place in places if not (isinstance(place, ast.BinOp) and isinstance(place.op, ast.Mod))]
    return [] if names(loop.target) & {name for place in bounded for name in names(place)} else [call.args[-1]]


def _another_pass(source: Source, rng: random.Random) -> str | None:
    """Put one statement into a new loop."""
    found = [statement for block in source.blocks() for statement in block if _repeatable(source, statement)]
    if not found:
        return None
    statement = rng.choice(found)
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    lines = source.lines[first - 1 : last]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    looped = [
        f"{indent}for _ in range({rng.choice((2, 2, 3, 5))}):",
        *(f"    {line}" if line else "" for line in lines),
    ]
    return source.with_lines(first, last, looped)


def _repeatable(source: Source, statement: ast.stmt) -> bool:
    """Whether a statement does something that can be done again, and its lines can be indented."""
    kinds = ast.Assign | ast.AugAssign | ast.Expr | ast.If | ast.For | ast.While
    is_bare = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    leaves: tuple[type[ast.AST], ...] = (ast.Return, ast.Yield, ast.YieldFrom)
    if not isinstance(statement, ast.For | ast.While):
        leaves += (ast.Break, ast.Continue)
    return (
        isinstance(statement, kinds)
        and not (is_bare or source.analysis.changes_lists(statement))
        and not any(isinstance(node, leaves) or _is_text_of_lines(node) for node in ast.walk(statement))
    )


def _is_text_of_lines(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Constant(str()):
            return node.lineno != node.end_lineno
    return False
