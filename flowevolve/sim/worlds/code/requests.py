"""How the coder of the world `code` handles a request: where it starts from, what it changes, and what it keeps."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flowevolve.programs.parts import restore
from flowevolve.prompts.programs import ShownProgram
from flowevolve.sim.worlds.code.coder import PREFERRED, Coder, EditPlan, edit_files
from flowevolve.sim.worlds.code.crossover import OtherProgram
from flowevolve.sim.worlds.code.prompt import ProgramRequest

_RESTRUCTURED = {"constants": 1.0, "loops": 3.0, "statements": 3.0, "growth": 4.0}
"""How likely each kind of change is where the prompt asks for a different program, which should differ in its structure
more than in its numbers. Kinds that merely exchange an operator or a function are left out: they make no new method.
"""
_MANY = (3, 6)
"""The least and the most changes that make a different program."""
_FAR = (-2.0, 0.0)
"""How far numbers may move when a different program is made, as in `Coder.steps`."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The files that the coder started from, the files that it made of them, and the kinds of its changes, in order."""

    old: Mapping[str, str]
    new: Mapping[str, str]
    kinds: Sequence[str]


def edit_program(request: ProgramRequest, coder: Coder, rng: random.Random) -> Edited | None:
    """Change a program as the prompt asks; None if the prompt shows no program."""
    parent = request.parent
    if parent is None:
        working = [program for program in request.others if program.score is not None] or request.others[:1]
        return _different(rng.choice(working), request, rng) if working else None
    if request.anew:
        return _different(parent, request, rng)
    others = [
        OtherProgram(other.program, _better(other.score, parent.score), is_ancestor)
        for programs, is_ancestor in ((request.others, False), (request.ancestors, True))
        for other in programs
    ]
    plan = EditPlan(_weighed(coder.weights, request, bool(others)), rng.choice(coder.changes), coder.steps)
    if not (request.keep or request.take) or rng.random() >= coder.heedful:
        return Edited(parent.program, *edit_files(parent.program, others, plan, rng))
    return _with_parts(parent.program, others, request, plan, rng)


def _different(start: ShownProgram, request: ProgramRequest, rng: random.Random) -> Edited:
    plan = EditPlan(_weighed(_RESTRUCTURED, request, others=False), rng.randint(*_MANY), _FAR)
    return Edited(start.program, *edit_files(start.program, [], plan, rng))


def _better(score: float | None, than: float | None) -> bool | None:
    return None if score is None or than is None or score == than else score > than


def _with_parts(
    old: Mapping[str, str],
    others: Sequence[OtherProgram],
    request: ProgramRequest,
    plan: EditPlan,
    rng: random.Random,
) -> Edited:
    """Keep the parts that are to be kept, and take over those of the other program, which counts as one change."""
    taken = restore(request.others[0].program, old, request.take) if request.others and request.take else None
    if taken is None or taken == old:
        return Edited(old, *edit_files(old, others, replace(plan, keep=request.keep), rng))
    if plan.changes == 1:
        return Edited(old, taken, ["crossover"])
    further = replace(plan, changes=plan.changes - 1, keep=[*request.keep, *request.take])
    new, kinds = edit_files(taken, others, further, rng)
    return Edited(old, new, ["crossover", *kinds])


def _weighed(weights: Mapping[str, float], request: ProgramRequest, others: bool) -> dict[str, float]:
    """Adjust the weights of kinds of changes by the hints. Without other programs there is nothing to cross with."""
    return {
        kind: weight * PREFERRED ** request.leanings.get(kind, 0.0)
        for kind, weight in weights.items()
        if others or kind != "crossover"
    }
