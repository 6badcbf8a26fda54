"""How two programs differ, expressed in the kinds of changes that the world `code` makes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from flowevolve.sim.worlds.code.analysis import called
from flowevolve.sim.worlds.code.source import Source, numbers, parse

PHRASES: Mapping[str, str] = {
    "constants": "other constants",
    "operators": "other operators",
    "calls": "other functions called",
    "loops": "loops that run otherwise",
    "statements": "statements moved, doubled or left out",
    "crossover": "parts of other programs",
    "growth": "terms that were added",
}
"""What each kind of change is called in a sentence."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def kinds_between(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The kinds of changes that turn one program into the other, structural changes first. Files are matched by name.

    A crossover is never among them, since it can't be told from other changes.
    """
    found: dict[str, None] = {}
    for name in old:
        ours, theirs = parse(old[name]), parse(new.get(name, ""))
        if ours is not None and theirs is not None and ours.text != theirs.text:
            found |= dict.fromkeys(_kinds(ours, theirs))
    return list(found)


def _kinds(old: Source, new: Source) -> list[str]:
    found: list[str] = []
    if _shape(old, ast.stmt) != _shape(new, ast.stmt):
        found.append("loops" if _count(old, *_LOOPS) != _count(new, *_LOOPS) else "statements")
    elif sorted(old.lines) == sorted(new.lines):
        return ["statements"]  # the same lines in another order
    if _count(old, ast.BinOp) != _count(new, ast.BinOp):
        found.append("growth")
    elif _shape(old, ast.operator) != _shape(new, ast.operator) or _shape(old, ast.cmpop) != _shape(new, ast.cmpop):
        found.append("operators")
    if not found and _calls(old) != _calls(new):
        found.append("calls")
    ours, theirs = _values(old), _values(new)
    if len(ours) == len(theirs) and ours != theirs:
        found.append("constants")
    return found or ["operators"]  # all that can remain is that operands changed places


def _shape(source: Source, kind: type[ast.AST]) -> list[str]:
    return [type(node).__name__ for node in ast.walk(source.tree) if isinstance(node, kind)]


def _count(source: Source, *kinds: type[ast.AST]) -> int:
    return sum(isinstance(node, kinds) for node in ast.walk(source.tree))


def _calls(source: Source) -> list[str]:
    return [called(node) for node in ast.walk(source.tree) if isinstance(node, ast.Call)]


def _values(source: Source) -> list[str]:
    return [repr(node.value) for node in numbers(source.tree)]
