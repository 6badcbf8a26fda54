"""What the world `code` says of a program in words: its parts, one by one, by what can be counted in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from flowevolve.programs.features import FEATURES
from flowevolve.sim.code_sense import called
from flowevolve.sim.code_source import Source, numbers, parse

_MOST_NAMED, _MOST_CHARACTERS = 3, 90
"""So that a trait is not cut off by who reads it."""
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
"""What stands for the numbers outside of functions."""


@dataclass(frozen=True, slots=True)
class Trait:
    """Of a function or class at the top level of a program. Texts, as they are compared with what was said before."""

    loops: str
    statements: str
    growth: str
    """How many operators there are."""
    operators: str
    """Which ones."""
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
    """What is said of each part of all files, and of the numbers outside of functions under `SETTINGS`."""
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
    """Functions and classes at the top level; of several of one name the first."""
    found: dict[str, ast.stmt] = {}
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.setdefault(node.name, node)
    return found


def loops_in(node: ast.AST) -> int:
    """Those of comprehensions, too."""
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
    """The first few, each once."""
    return " ".join([*dict.fromkeys(word for word in words if word)][:_MOST_NAMED]) or "none"


def _settings(source: Source) -> str:
    """Numbers that are given a name at the top level."""
    found = [
        f"{node.targets[0].id} {source.said(node.value)}"
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and numbers(node.value)
    ]
    return ", ".join(found)[:_MOST_CHARACTERS]


def kind_of_news(name: str, said: str, before: str) -> str:
    """The kind of change by which a part became what is ``said`` of it, given the text about the program before."""
    if name.rpartition(":")[2] == SETTINGS:
        return "constants"
    old = re.search(rf"`{re.escape(name)}`: {_TRAIT.pattern}", before)
    new = _TRAIT.search(said)
    if old is None or new is None:
        return "statements"
    return next((field.name for field in fields(Trait) if old[field.name] != new[field.name]), "constants")
