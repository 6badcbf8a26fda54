"""How the world `code` changes the build of a program: statements moved, doubled or left out, and parts of others."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence

from flowevolve.sim.code_sense import names
from flowevolve.sim.code_source import Source, is_number, numbers, parse

_KEPT = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Return)
"""Statements that are not left out or doubled: hardly a program works after it."""


def change_statements(source: Source, step: float, rng: random.Random) -> str | None:
    """One statement doubled or left out, or two that follow each other in the other order."""
    blocks = [block for block in map(_moveable, source.blocks()) if len(block) > 1]
    if not blocks:
        return None
    block = rng.choice(blocks)
    place = rng.randrange(len(block) - 1)
    one, other = block[place], block[place + 1]
    kind = rng.choice(("swap", "double", "leave"))
    if kind == "swap" and not isinstance(other, ast.Return):
        if names(one) & names(other) and any(map(source.sense.changes_lists, (one, other))):
            return None
        between = source.lines[_last(one) : _first(other) - 1]
        lines = [*_lines(source, other), *between, *_lines(source, one)]
        return source.with_lines(_first(one), _last(other), lines)
    if isinstance(one, _KEPT) or source.sense.changes_lists(one) or source.sense.ends_loops(one):
        return None
    if kind == "double":
        return source.with_lines(_first(one), _last(one), [*_lines(source, one), *_lines(source, one)])
    return source.with_lines(_first(one), _last(one), [])


def _moveable(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """All but texts that stand for themselves: without them, or elsewhere, nothing runs otherwise."""
    return [each for each in block if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]


def cross(source: Source, others: Sequence[Source], rng: random.Random) -> str | None:
    """A function, or a number or vector, as another program has it under the same name; numbers maybe half-way."""
    if not others:
        return None
    other = rng.choice(others)
    ways = [_function_of, _number_of]
    rng.shuffle(ways)
    for way in ways:
        changed = way(source, other, rng)
        if changed is not None and changed != source.text:
            return changed
    return None


def _function_of(source: Source, other: Source, rng: random.Random) -> str | None:
    """With the functions it calls that are not here."""
    ours, theirs = _functions(source), _functions(other)
    shared = [
        name
        for name, function in ours.items()
        if name in theirs
        and source.may_change(function)
        and source.said(function) != other.said(theirs[name])
        and _parameters(function) == _parameters(theirs[name])
    ]
    if not shared:
        return None
    name = rng.choice(shared)
    lines: list[str] = []
    for helper in _needed(theirs[name], theirs):
        if helper not in ours:
            lines += [*_lines(other, theirs[helper]), "", ""]
    lines += _lines(other, theirs[name])
    return source.with_lines(_first(ours[name]), _last(ours[name]), lines)


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)]


def _functions(source: Source) -> dict[str, ast.FunctionDef]:
    return {each.name: each for each in source.tree.body if isinstance(each, ast.FunctionDef)}


def _needed(function: ast.FunctionDef, among: dict[str, ast.FunctionDef]) -> list[str]:
    """Names of the functions it calls, directly or not; those that others call come first."""
    found: list[str] = []

    def visit(each: ast.FunctionDef) -> None:
        for node in ast.walk(each):
            if isinstance(node, ast.Name) and node.id in among and node.id not in (*found, function.name):
                found.append(node.id)
                visit(among[node.id])

    visit(function)
    return found[::-1]


def _number_of(source: Source, other: Source, rng: random.Random) -> str | None:
    ours, theirs = _numeric(source), _numeric(other)
    shared = [
        name
        for name, value in ours.items()
        if name in theirs
        and source.may_change(value)
        and len(numbers(value)) == len(numbers(theirs[name]))
        and source.said(value) != other.said(theirs[name])
    ]
    if not shared:
        return None
    name = rng.choice(shared)
    weight = rng.choice((0.0, 0.5, rng.random()))
    texts = [
        (source.place(mine), _blend(mine, its, weight))
        for mine, its in zip(numbers(ours[name]), numbers(theirs[name]), strict=True)
    ]
    return source.with_texts(texts)


def _numeric(source: Source) -> dict[str, ast.expr]:
    """What is assigned to a name and is a number or made of several."""
    assigned = [node for node in ast.walk(source.tree) if isinstance(node, ast.Assign) and len(node.targets) == 1]
    return {
        node.targets[0].id: node.value
        for node in assigned
        if isinstance(node.targets[0], ast.Name)
        and (is_number(node.value) or (isinstance(node.value, ast.List | ast.Tuple) and numbers(node.value)))
    }


def _blend(mine: ast.Constant, its: ast.Constant, weight: float) -> str:
    """``weight`` is ours. Integers stay such."""
    assert isinstance(mine.value, int | float)
    assert isinstance(its.value, int | float)
    value = weight * mine.value + (1 - weight) * its.value
    whole = isinstance(mine.value, int) and isinstance(its.value, int)
    return repr(round(value)) if whole else repr(float(f"{value:.12g}"))


def _first(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    return min([node.lineno, *(each.lineno for each in decorators)])


def _last(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _lines(source: Source, node: ast.stmt) -> Sequence[str]:
    return source.lines[_first(node) - 1 : _last(node)]


def sources(texts: Sequence[str]) -> list[Source]:
    """Those that are Python."""
    return [source for text in texts if (source := parse(text)) is not None]
