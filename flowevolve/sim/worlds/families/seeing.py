"""How the agents of the world `families` see programs, and put them into words."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from flowevolve.prompts.abstracts import ABSTRACT
from flowevolve.prompts.programs import ShownProgram
from flowevolve.sim.worlds.families.chances import Chances
from flowevolve.sim.worlds.families.coder import member_of
from flowevolve.tasks.families.catalog import WAYS, Member, Piece

_PIECE = re.compile(r"`(?:copies|place)`: (\w+) \(([^)]*)\)")


def in_words(piece: Piece) -> str:
    """A part of a program in words, such as ``place: snake (damp 0.5, turn 0.25)``."""
    numbers = ", ".join(f"{name} {value:g}" for name, value in piece.numbers.items())
    return f"`{piece.way.part}`: {piece.way.name} ({numbers})"


def from_words(text: str) -> Member | None:
    """The program that a text describes part by part; None if it does not. The first description of a part counts."""
    found: dict[str, Piece] = {}
    for name, numbers in _PIECE.findall(text):
        way = WAYS.get(name)
        values = [float(number.split()[-1]) for number in numbers.split(", ")]
        if way is not None and len(values) == len(way.best):
            found.setdefault(way.part, Piece(way, tuple(values)))
    return Member(found["copies"], found["place"]) if len(found) == 2 else None


def seen(shown: ShownProgram, chances: Chances, rng: random.Random) -> Member | None:
    """A program as an agent understands it; None if it does not. It always understands words, but not always code."""
    if ABSTRACT in shown.program:
        return from_words(shown.program[ABSTRACT])
    return None if rng.random() < chances.overlooks else member_of(shown)


def directions(parent: Member, child: Member) -> Mapping[str, int]:
    """The numbers that rose (1) or fell (-1) from one program to the other, where both go the same way."""
    found: dict[str, int] = {}
    for old, new in zip(parent.pieces, child.pieces, strict=True):
        if old.way == new.way:
            found |= {
                name: 1 if value > old.numbers[name] else -1
                for name, value in new.numbers.items()
                if value != old.numbers[name]
            }
    return found


def new_ways(parent: Member, child: Member) -> list[str]:
    """The ways of the child that the parent does not go."""
    return [name for name in child.family if name not in parent.family]
