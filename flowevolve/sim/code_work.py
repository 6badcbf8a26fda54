"""How the coder of the world `code` handles a request: where it starts from, what it changes, and what it keeps."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowevolve.programs.slots import restore
from flowevolve.sim.code_crossover import Other
from flowevolve.sim.code_prompt import Asked, Seen
from flowevolve.sim.coder import PREFERRED, Coder, Work, edit_files

_RESTRUCTURED = {"constants": 1.0, "loops": 3.0, "statements": 3.0, "growth": 4.0}
"""How likely each kind of change is where the prompt asks for a different program, which should differ in its structure
more than in its numbers. Kinds that merely exchange an operator or a function are left out: they make no new method.
"""
_MANY = (3, 6)
"""The least and the most changes that make a different program."""
_FAR = (-2.0, 0.0)
"""How far numbers may move when a different program is made, as in `Coder.steps`."""


@dataclass(frozen=True, slots=True)
class Done:
    """The files that the coder started from, the files that it made of them, and the kinds of its changes, in order."""

    old: Mapping[str, str]
    new: Mapping[str, str]
    kinds: Sequence[str]


def work_on(asked: Asked, coder: Coder, rng: random.Random) -> Done | None:
    """Change a program as the prompt asks; None if the prompt shows no program."""
    if asked.parent is None:
        working = [seen for seen in asked.others if seen.score is not None] or asked.others[:1]
        return _different(rng.choice(working), asked, rng) if working else None
    if asked.anew:
        return _different(asked.parent, asked, rng)
    others = _beside(asked.parent, asked)
    work = Work(_weighed(coder.weights, asked, bool(others)), rng.choice(coder.changes), coder.steps)
    if not (asked.keep or asked.take) or rng.random() >= coder.heedful:
        return Done(asked.parent.files, *edit_files(asked.parent.files, others, work, rng))
    return _with_parts(asked.parent.files, others, asked, work, rng)


def _different(seen: Seen, asked: Asked, rng: random.Random) -> Done:
    work = Work(_weighed(_RESTRUCTURED, asked, others=False), rng.randint(*_MANY), _FAR)
    return Done(seen.files, *edit_files(seen.files, [], work, rng))


def _beside(parent: Seen, asked: Asked) -> list[Other]:
    shown = [*((seen, False) for seen in asked.others), *((seen, True) for seen in asked.ancestors)]
    return [Other(seen.files, _better(seen.score, parent.score), before) for seen, before in shown]


def _better(score: float | None, than: float | None) -> bool | None:
    return None if score is None or than is None or score == than else score > than


def _with_parts(old: Mapping[str, str], others: Sequence[Other], asked: Asked, work: Work, rng: random.Random) -> Done:
    """Keep the parts that are to be kept, and take over those of the other program, which counts as one change."""
    taken = restore(asked.others[0].files, old, asked.take) if asked.others and asked.take else None
    if taken is None or taken == old:
        return Done(old, *edit_files(old, others, work.keeping(asked.keep), rng))
    if work.changes == 1:
        return Done(old, taken, ["crossover"])
    further = Work(work.weights, work.changes - 1, work.steps).keeping([*asked.keep, *asked.take])
    new, kinds = edit_files(taken, others, further, rng)
    return Done(old, new, ["crossover", *kinds])


def _weighed(weights: Mapping[str, float], asked: Asked, others: bool) -> dict[str, float]:
    """Adjust the weights of kinds of changes by the hints. Without other programs there is nothing to cross with."""
    return {
        kind: weight * PREFERRED ** asked.leanings.get(kind, 0.0)
        for kind, weight in weights.items()
        if others or kind != "crossover"
    }
