"""The families: which ways there are of doing each part, and what the best program of each family scores.

A program has two parts: `copies` says how many copies of each expert there are, `place` on which GPUs they go. A way of
doing a part is one structure of its function; all programs with the same two ways are a family. What is left to choose
in a family are the four numbers that its functions begin with.

The ceilings are those of real programs: for each family the highest score in LEVI's published archive for its problem
EPLB (github.com/ttanv/levi, ``examples/ADRS/eplb/result_snapshot.json``: 33 programs, scores out of 100). There a
program is taken to go by ``shares`` if it has a ``cumsum``, else by ``rounds``; it is a ``snake`` or ``interleaved`` if
its text says so, ``greedy`` if it is neither and has an ``argmin``, and else goes by ``blocks``. No program of the
archive is of the family ``shares, greedy``: it is given the lowest score of the archive, since no program of it has
survived.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, get_args

PartName = Literal["copies", "place"]
PARTS: tuple[PartName, ...] = get_args(PartName)
DEPTH = 0.3
"""The share of its family's ceiling that a program with the worst numbers loses. A program with numbers drawn at random
loses about a tenth, so a new one of the next family is worth about as much as the best one of the family before; in
the archive, the worst program of a family is 5 to 14 % below its best.
"""
CASES: Mapping[str, float] = {"steady": 0.75, "shifting": 0.25}
"""The cases, and how much the numbers in `copies` count in each; those in `place` count for the rest."""
_HEADER = '"""Spreads copies of experts over GPUs."""\n\nfrom __future__ import annotations\n'
_FOOTER = """
def solve(loads: list[float], slots: int, gpus: int) -> list[list[int]]:
    return place(loads, copies(loads, slots), gpus)
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of doing a part, with the numbers that suit it best. They were drawn at random once."""

    part: PartName
    name: str
    best: Mapping[str, float]
    """The best numbers, between 0 and 1, by the names that the function gives them."""


WAYS: Mapping[str, Way] = {
    way.name: way
    for way in (
        Way("copies", "rounds", {"trust": 0.82, "spare": 0.27}),
        Way("copies", "shares", {"blend": 0.15, "phase": 0.64}),
        Way("place", "greedy", {"pull": 0.71, "crowd": 0.12}),
        Way("place", "blocks", {"weight": 0.33, "shift": 0.88}),
        Way("place", "interleaved", {"slope": 0.09, "start": 0.55}),
        Way("place", "snake", {"damp": 0.91, "turn": 0.22}),
    )
}
"""The ways by name. The first way of each part is the plain one, which programmers think of first."""
CEILINGS: Mapping[tuple[str, str], float] = {
    ("rounds", "greedy"): 59.59,
    ("rounds", "blocks"): 67.23,
    ("rounds", "interleaved"): 67.02,
    ("rounds", "snake"): 67.05,
    ("shares", "greedy"): 58.09,
    ("shares", "blocks"): 73.65,
    ("shares", "interleaved"): 74.06,
    ("shares", "snake"): 74.59,
}
"""What the best program of each family scores."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a program: the way that it goes by, and its numbers in the order of their names."""

    way: Way
    values: tuple[float, ...]

    @property
    def numbers(self) -> Mapping[str, float]:
        return dict(zip(self.way.best, self.values, strict=True))

    @property
    def error(self) -> float:
        """How far its numbers are from the best ones on average: 0 at best, 1 at worst."""
        distances = [abs(value - best) for value, best in zip(self.values, self.way.best.values(), strict=True)]
        return sum(min(1.0, distance) for distance in distances) / len(distances)

    def __str__(self) -> str:
        """The text of the function."""
        lines = _source(self.way.name).split("\n")
        return "\n".join(_assigned(line, self.numbers) for line in lines)


@dataclass(frozen=True, slots=True)
class Member:
    """A program of one of the families."""

    copies: Piece
    place: Piece

    @property
    def pieces(self) -> tuple[Piece, Piece]:
        return self.copies, self.place

    @property
    def family(self) -> tuple[str, str]:
        return self.copies.way.name, self.place.way.name

    def with_piece(self, piece: Piece) -> Member:
        return replace(self, copies=piece) if piece.way.part == "copies" else replace(self, place=piece)

    def score(self, case: str) -> float:
        """The score in a case: at most the ceiling of its family."""
        lost = CASES[case] * self.copies.error + (1 - CASES[case]) * self.place.error
        return CEILINGS[self.family] * (1 - DEPTH * lost)

    def lost(self, part: PartName, case: str) -> float:
        """How many points the numbers of a part cost in a case."""
        share = CASES[case] if part == "copies" else 1 - CASES[case]
        piece = self.copies if part == "copies" else self.place
        return CEILINGS[self.family] * DEPTH * share * piece.error

    def __str__(self) -> str:
        """The program's text."""
        return "\n\n".join([_HEADER, f"{self.copies}\n", f"{self.place}\n", _FOOTER.strip("\n")]) + "\n"


def ways_of(part: PartName) -> Sequence[Way]:
    """All ways of doing a part; the plain one is the first."""
    return [way for way in WAYS.values() if way.part == part]


def middle(way: Way) -> Piece:
    """A part with all of its numbers in the middle."""
    return Piece(way, tuple(0.5 for _ in way.best))


SEED = Member(*(middle(ways_of(part)[0]) for part in PARTS))
"""The program that evolution starts from: the plain way of each part."""


@lru_cache(maxsize=4096)
def read_member(text: str) -> Member | None:
    """The family and the numbers of a program, by its syntax tree; None if it is of no family."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    copies, place = (_read_piece(functions.get(part)) for part in PARTS)
    return None if copies is None or place is None or "solve" not in functions else Member(copies, place)


def _read_piece(function: ast.FunctionDef | None) -> Piece | None:
    if function is None:
        return None
    values: dict[str, float] = {}
    shape = _shape(function, values)
    way = _shapes().get(shape)
    return None if way is None else Piece(way, tuple(values[name] for name in way.best))


def _shape(function: ast.FunctionDef, values: dict[str, float]) -> str:
    """The structure of a function without the numbers that it begins with, which are put into ``values``."""
    rest = [each for each in function.body if not _is_number(each, values)]
    head = [ast.dump(function.args), *values]
    return "\n".join([function.name, *head, *map(ast.dump, rest)])


def _is_number(statement: ast.stmt, values: dict[str, float]) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=float() | int() as value)):
            values[name] = float(value)
            return True
    return False


@cache
def _shapes() -> Mapping[str, Way]:
    """The ways by the structure of their functions."""
    found: dict[str, Way] = {}
    for name, way in WAYS.items():
        function = ast.parse(_source(name)).body[0]
        assert isinstance(function, ast.FunctionDef), "the module of a way has one function"
        found[_shape(function, {})] = way
    return found


@cache
def _source(name: str) -> str:
    """The function in the module of a way."""
    text = files(__package__).joinpath(f"{name}.py").read_text(encoding="utf-8")
    return text[text.index("def ") :].rstrip("\n")


def _assigned(line: str, numbers: Mapping[str, float]) -> str:
    """The line with its number, if it is one that sets a number."""
    name, found, _ = line.strip().partition(" = ")
    return f"    {name} = {numbers[name]:.6g}" if found and name in numbers else line
