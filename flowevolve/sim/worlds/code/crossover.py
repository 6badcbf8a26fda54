"""How the world `code` crosses a program with others that the prompt shows: it takes their functions or numbers."""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowevolve.programs.names import first_line
from flowevolve.sim.worlds.code.source import Source, last_line, number_of, parse

Number = tuple[ast.expr, float]
"""A number's node and its value."""


@dataclass(frozen=True, slots=True)
class OtherProgram:
    """A program shown beside the one that is changed.

    ``better`` says whether its score is better; None if it is equal or not known.
    """

    files: Mapping[str, str]
    better: bool | None
    is_ancestor: bool = False
    """Whether the changed program descends from it. Its functions are then those that were given up before."""


def cross(source: Source, name: str, others: Sequence[OtherProgram], rng: random.Random) -> str | None:
    """Change the file ``name`` by a function or by numbers that another program has under the same names."""
    known = [(other, theirs) for other in others if (theirs := parse(other.files.get(name, ""))) is not None]
    if not known:
        return None
    other, theirs = rng.choice(known)
    found = [
        _with_numbers(source, theirs, other.better, rng),
        None if other.is_ancestor else _with_function(source, theirs, rng),
    ]
    changed = [text for text in found if text is not None and text != source.text]
    return rng.choice(changed) if changed else None


def _with_function(source: Source, other: Source, rng: random.Random) -> str | None:
    """Take over one function of the other program, with the functions it calls that are missing here."""
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
            lines += [*other.lines_of(theirs[helper]), "", ""]
    lines += other.lines_of(theirs[name])
    return source.with_lines(first_line(ours[name]), last_line(ours[name]), lines)


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)]


def _functions(source: Source) -> dict[str, ast.FunctionDef]:
    return {each.name: each for each in source.tree.body if isinstance(each, ast.FunctionDef)}


def _needed(function: ast.FunctionDef, among: dict[str, ast.FunctionDef]) -> list[str]:
    """The names of the functions that a function calls, directly or indirectly; callees come before their callers."""
    found: list[str] = []

    def visit(each: ast.FunctionDef) -> None:
        for node in ast.walk(each):
            if isinstance(node, ast.Name) and node.id in among and node.id not in (*found, function.name):
                found.append(node.id)
                visit(among[node.id])

    visit(function)
    return found[::-1]


def _with_numbers(source: Source, other: Source, better: bool | None, rng: random.Random) -> str | None:
    """Move the numbers that both programs have under the same name, one name's or all, along their difference.

    The better of two points is usually closer to the optimum, so the new point lies on its side of their midpoint, at
    most as far beyond the better point as the two are apart.
    """
    our_names, their_names = _values(source), _values(other)
    shared = [
        (ours, theirs)
        for name, ours in our_names.items()
        if (theirs := their_names.get(name)) is not None and len(ours) == len(theirs) and _said(ours) != _said(theirs)
    ]
    if not shared:
        return None
    chosen = shared if rng.random() < 0.5 else [rng.choice(shared)]
    low, high = (0.0, 1.0) if better is None else (0.5, 2.0) if better else (-1.0, 0.5)
    share = rng.uniform(low, high)
    pairs = [pair for values in chosen for pair in zip(*values, strict=True)]
    return source.with_texts([(source.place(node), _moved(ours, theirs, share)) for (node, ours), (_, theirs) in pairs])


def _values(source: Source) -> dict[str, list[Number]]:
    """The numbers that are assigned to names, alone or in lists, and may change."""
    assigned = [node for node in source.nodes(ast.Assign) if len(node.targets) == 1]
    found = {node.targets[0].id: _numbers(node.value) for node in assigned if isinstance(node.targets[0], ast.Name)}
    return {name: values for name, values in found.items() if values}


def _numbers(node: ast.expr) -> list[Number]:
    if isinstance(node, ast.List | ast.Tuple):
        return [number for each in node.elts for number in _numbers(each)]
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    value = number_of(node.operand if isinstance(node, ast.UnaryOp) and negative else node)
    return [] if value is None else [(node, -value if negative else value)]


def _said(values: Sequence[Number]) -> list[float]:
    return [value for _, value in values]


def _moved(ours: float, theirs: float, share: float) -> str:
    """A point on the line from one number to the other, as Python text. Integers stay integers, and counts above 0."""
    value = ours + share * (theirs - ours)
    if isinstance(ours, int) and isinstance(theirs, int):
        return repr(max(round(value), min(1, ours, theirs)))
    return repr(float(f"{value:.12g}"))
