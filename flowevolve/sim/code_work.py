"""What the coder of the world `code` makes of a request: from which program it starts, what it changes and leaves."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowevolve.programs.slots import restore
from flowevolve.sim.code_crossover import Other
from flowevolve.sim.code_prompt import Asked, Seen
from flowevolve.sim.coder import PREFERRED, Coder, Work, edit_files

_RESTRUCTURED = {"constants": 1.0, "loops": 3.0, "statements": 3.0, "growth": 4.0}
"""Weights of kinds of changes where another program altogether is asked for: another structure, not other numbers. What
only turns a program into its opposite (an operator, a function for another) is no other method.
"""
_MANY = (3, 6)
"""Changes then, at least and at most."""
_FAR = (-2.0, 0.0)
"""How far numbers may go then, as `Coder.steps`."""


@dataclass(frozen=True, slots=True)
class Done:
    """The files the coder started from, those it made of them, and the kinds of changes, in order."""

    old: Mapping[str, str]
    new: Mapping[str, str]
    kinds: Sequence[str]


def work_on(asked: Asked, coder: Coder, rng: random.Random) -> Done | None:
    """None if no program is shown."""
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
    """Parts that are to be kept stay, those to be taken from another program are. The taking counts as a change."""
    taken = restore(asked.others[0].files, old, asked.take) if asked.others and asked.take else None
    if taken is None or taken == old:
        return Done(old, *edit_files(old, others, work.keeping(asked.keep), rng))
    if work.changes == 1:
        return Done(old, taken, ["crossover"])
    further = Work(work.weights, work.changes - 1, work.steps).keeping([*asked.keep, *asked.take])
    new, kinds = edit_files(taken, others, further, rng)
    return Done(old, new, ["crossover", *kinds])


def _weighed(weights: Mapping[str, float], asked: Asked, others: bool) -> dict[str, float]:
    """The weights of kinds of changes, as hints have them; without other programs there is nothing to cross with."""
    return {
        kind: weight * PREFERRED ** asked.leanings.get(kind, 0.0)
        for kind, weight in weights.items()
        if others or kind != "crossover"
    }
