"""The coder of the world `families`: small changes that keep a program's family, and the moves that can leave it.

A move takes one step: the new program differs in the way of at most one part from a program that the prompt shows, or
from the plain one. So some families can be reached only by way of others.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from flowevolve.prompts.programs import ShownProgram
from flowevolve.sim.worlds.code.coder import Coder
from flowevolve.sim.worlds.code.prompt import ProgramRequest
from flowevolve.sim.worlds.code.requests import Edited
from flowevolve.sim.worlds.families.chances import Chances
from flowevolve.sim.worlds.families.hints import Hints, read_hints
from flowevolve.tasks.families.catalog import PARTS, SEED, WAYS, Member, Piece, Way, read_member, ways_of

_STEPS = (-2.0, 0.0)
"""How far a number moves: a normal deviate times 10 to a power drawn from this interval. Numbers are from 0 to 1."""


def member_of(shown: ShownProgram) -> Member | None:
    """The family and the numbers of a program that a prompt shows as code; None if it is of no family."""
    return next((found for text in shown.program.values() if (found := read_member(text)) is not None), None)


@dataclass(frozen=True, slots=True)
class FamilyCoder:
    """Writes programs as a request asks, as well as ``coder``, which is one of the world `code`, with chances of its
    own.
    """

    coder: Coder
    chances: Chances
    rng: random.Random

    def edit(self, request: ProgramRequest) -> Edited | None:
        """The files before and after, and the kind of the change; None if the prompt shows no program of a family."""
        hints = read_hints(request.hints)
        others = [each for shown in request.others if (each := member_of(shown)) is not None]
        if request.parent is None:
            first = next(iter(request.others), None)
            return None if first is None or not others else _edited(first.program, self._unlike(others), "another way")
        parent = member_of(request.parent)
        if request.anew:
            return _edited(request.parent.program, self._to_plan(hints.ways), "plan")
        if parent is None:
            return None
        heeds = self.rng.random() < self.coder.heedful
        keep = request.keep if heeds else ()
        taken = _with_parts(parent, others[:1], request.take if heeds else ())
        if taken != parent:
            return _edited(request.parent.program, taken, "crossover")
        moved = self._moved(parent, others, hints, keep)
        return _edited(request.parent.program, *moved)

    def _unlike(self, shown: Sequence[Member]) -> Member:
        """A program of a family that is not shown but is one step from one that is; or else of a family that is."""
        known = {each.family for each in shown}
        new = [family for family in reachable(known) if family not in known]
        if new and self.rng.random() < self.chances.differs:
            return self._fresh(self.rng.choice(new))
        return self._fresh(self.rng.choice(shown).family)

    def _to_plan(self, ways: Sequence[str]) -> Member:
        """The plain program with the plan's first way."""
        if ways and self.rng.random() < self.chances.carries:
            return self._fresh(SEED.with_piece(self._piece(WAYS[ways[0]])).family)
        if self.rng.random() < self.chances.usual:
            return self._fresh(SEED.family)
        return self._fresh(self.rng.choice([each for each in reachable(()) if each != SEED.family]))

    def _moved(
        self, parent: Member, others: Sequence[Member], hints: Hints, keep: Collection[str]
    ) -> tuple[Member, str]:
        """The parent with a way that hints name, with a part of another program, or with other numbers."""
        ways = [WAYS[name] for name in hints.ways if name not in parent.family and WAYS[name].part not in keep]
        if ways and self.rng.random() < self.chances.follows:
            return parent.with_piece(self._piece(self.rng.choice(ways))), "hint"
        pieces = [piece for other in others for piece in other.pieces if piece.way.part not in keep]
        mixed = [made for piece in pieces if (made := parent.with_piece(piece)) not in (parent, *others)]
        if mixed and self.rng.random() < self.chances.combines:
            return self.rng.choice(mixed), "crossover"
        return self._local(parent, hints.directions, keep), "constants"

    def _local(self, parent: Member, directions: Mapping[str, int], keep: Collection[str]) -> Member:
        """Move some numbers, each by a chance of its own in the direction that hints name. This keeps the family."""
        made = parent
        free = [part for part in PARTS if part not in keep] or PARTS
        for _ in range(self.rng.choice(self.coder.changes)):
            chosen = self.rng.choice(free)
            piece = next(each for each in made.pieces if each.way.part == chosen)
            name = self.rng.choice([*piece.way.best])
            distance = 10 ** self.rng.uniform(*_STEPS) * self.rng.gauss(0, 1)
            if name in directions and self.rng.random() < self.chances.follows:
                distance = abs(distance) * directions[name]
            numbers = {**piece.numbers, name: round(min(1.0, max(0.0, piece.numbers[name] + distance)), 6)}
            made = made.with_piece(Piece(piece.way, tuple(numbers.values())))
        return made

    def _fresh(self, family: tuple[str, str]) -> Member:
        return Member(*(self._piece(WAYS[name]) for name in family))

    def _piece(self, way: Way) -> Piece:
        """The way with numbers drawn at random."""
        return Piece(way, tuple(round(self.rng.random(), 6) for _ in way.best))


def reachable(shown: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """The families that differ in one part at most from one that is shown, or from the plain one."""
    every = product(*([way.name for way in ways_of(part)] for part in PARTS))
    start = {SEED.family, *shown}
    return [(copies, place) for copies, place in every if any(copies == one or place == other for one, other in start)]


def _with_parts(parent: Member, others: Sequence[Member], take: Collection[str]) -> Member:
    for other in others:
        for piece in other.pieces:
            if piece.way.part in take:
                parent = parent.with_piece(piece)
    return parent


def _edited(old: Mapping[str, str], new: Member, kind: str) -> Edited:
    """Replace the file with the program; files beside it stay."""
    name = next(iter(old))
    return Edited(old, {**old, name: str(new)}, [kind])
