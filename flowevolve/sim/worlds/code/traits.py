"""How the world `code` describes a program in words: part by part, by what can be counted in each."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from flowevolve.programs.features import FEATURES
from flowevolve.sim.worlds.code.analysis import called
from flowevolve.sim.worlds.code.source import Source, numbers, parse

_MOST_NAMED, _MOST_CHARACTERS = 3, 90
"""Limits that keep a trait short enough not to be cut off by the prompts that show it."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SYMBOLS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
SETTINGS = "<settings>"
"""The name under which numbers outside of functions are described."""


@dataclass(frozen=True, slots=True)
class Trait:
    """What is counted in one function or class at the top level of a program.

    All fields are texts, since they are compared with earlier descriptions.
    """

    loops: str
    statements: str
    growth: str
    """The number of operators."""
    operators: str
    """The operators themselves."""
    calls: str
    constants: str

    def __str__(self) -> str:
        return (
            f"{self.loops} loops, {self.statements} statements, {self.growth} operators ({self.operators}), "
            f"calls {self.calls}, numbers {self.constants}"
        )


_TRAIT = re.compile(
    r"(?P<loops>\d+) loops, (?P<statements>\d+) statements, (?P<growth>\d+) operators \((?P<operators>[^)]*)\), "
    r"calls (?P<calls>[^,;\n]*), numbers (?P<constants>[-+.\w ]*)"
)


def traits(program: Mapping[str, str]) -> dict[str, str]:
    """Describe each part of all files, and under `SETTINGS` the numbers outside of functions."""
    found: dict[str, str] = {}
    for file, text in program.items():
        source = parse(text)
        if source is not None:
            prefix = "" if len(program) == 1 else f"{file}:"
            found |= {f"{prefix}{name}": str(_trait(node)) for name, node in definitions(source).items()}
            if settings := _settings(source):
                found[f"{prefix}{SETTINGS}"] = settings
    return found


def definitions(source: Source) -> dict[str, ast.stmt]:
    """The functions and classes at the top level by name; of several with one name, the first."""
    found: dict[str, ast.stmt] = {}
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.setdefault(node.name, node)
    return found


def loops_in(node: ast.AST) -> int:
    """Count the loops below a node, those of comprehensions included."""
    comprehended = sum(len(each.generators) for each in ast.walk(node) if isinstance(each, _COMPREHENSIONS))
    return int(FEATURES["loop_count"](node, "")) + comprehended


def _trait(node: ast.AST) -> Trait:
    nodes = list(ast.walk(node))
    symbols = [_SYMBOLS[type(each)] for each in nodes if type(each) in _SYMBOLS]
    return Trait(
        str(loops_in(node)),
        str(sum(isinstance(each, ast.stmt) for each in nodes) - 1),
        str(len(symbols)),
        _named(symbols),
        _named([called(each) for each in nodes if isinstance(each, ast.Call)]),
        _named([repr(each.value) for each in numbers(node)]),
    )


def _named(words: list[str]) -> str:
    """List the first few different words, or ``none``."""
    return " ".join([*dict.fromkeys(word for word in words if word)][:_MOST_NAMED]) or "none"


def _settings(source: Source) -> str:
    """List the names and values of the numbers that are assigned at the top level."""
    found = [
        f"{node.targets[0].id} {source.said(node.value)}"
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and numbers(node.value)
    ]
    return ", ".join(found)[:_MOST_CHARACTERS]


def kind_of_change(name: str, said: str, before: str) -> str:
    """The kind of change that was made to a part: ``said`` describes it now, ``before`` the whole former program."""
    if name.rpartition(":")[2] == SETTINGS:
        return "constants"
    old = re.search(rf"`{re.escape(name)}`: {_TRAIT.pattern}", before)
    new = _TRAIT.search(said)
    if old is None or new is None:
        return "statements"
    return next((field.name for field in fields(Trait) if old[field.name] != new[field.name]), "constants")
