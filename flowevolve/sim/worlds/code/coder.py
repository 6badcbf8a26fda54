"""The coder of the world `code`: how it chooses what to change in a program, and how far."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flowevolve.programs.blocks import evolvable_lines
from flowevolve.programs.features import compiles
from flowevolve.programs.parts import REST
from flowevolve.sim.worlds.code.crossover import OtherProgram, cross
from flowevolve.sim.worlds.code.expressions import change_calls, change_operators, grow
from flowevolve.sim.worlds.code.numbers import change_constants, change_loops, change_text_constant
from flowevolve.sim.worlds.code.source import Source, parse
from flowevolve.sim.worlds.code.structure import change_statements

Change = Callable[[Source, float, random.Random], str | None]
"""Makes one change to a program and returns its new text, or None if it finds nothing to change.

The number says how far the program's numbers may move, relative to their size.
"""

_CHANGES: Mapping[str, Change] = {
    "constants": change_constants,
    "operators": change_operators,
    "calls": change_calls,
    "loops": change_loops,
    "statements": change_statements,
    "growth": grow,
}
PREFERRED = 4.0
"""A hint multiplies the weight of a kind of change by this factor, or divides it by it if the kind is to be avoided."""
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Coder:
    """How good a coder is."""

    weights: Mapping[str, float]
    """How likely each kind of change is, relative to the others."""
    changes: tuple[int, ...]
    """How many changes a reply may make; all numbers are equally likely."""
    steps: tuple[float, float]
    """How far a number may move, relative to its size: 10 to a power drawn from this interval."""
    broken: float
    """The share of its replies that are broken, with the preset ``normal``."""
    heedful: float
    """How often it keeps or takes over the parts that the prompt tells it to."""


CODERS: Mapping[str, Coder] = {
    "small": Coder(
        {"constants": 6, "operators": 1, "calls": 1, "loops": 1, "statements": 1, "crossover": 2, "growth": 1},
        (1, 1, 2),
        (-3.0, -0.5),
        0.08,
        0.8,
    ),
    "medium": Coder(
        {"constants": 5, "operators": 1, "calls": 1, "loops": 1, "statements": 1, "crossover": 3, "growth": 1.5},
        (1, 1, 2),
        (-3.0, 0.0),
        0.05,
        0.9,
    ),
    "large": Coder(
        {"constants": 5, "operators": 1, "calls": 1, "loops": 1.5, "statements": 1, "crossover": 4, "growth": 2},
        (1, 2, 3),
        (-3.0, 0.3),
        0.02,
        0.97,
    ),
}
"""The coders by the word in the model's name that selects them. A name with none of them selects the medium coder."""


def coder_of(model: str) -> Coder:
    return next((coder for word, coder in CODERS.items() if word in model.lower()), CODERS["medium"])


@dataclass(frozen=True, slots=True)
class EditPlan:
    """The changes that one reply is to make: how many, and how likely each kind is."""

    weights: Mapping[str, float]
    changes: int
    steps: tuple[float, float]
    keep: Sequence[str] = ()
    """The parts that stay as they are, named as in `flowevolve.programs.parts`."""


def edit_files(
    files: Mapping[str, str], others: Sequence[OtherProgram], plan: EditPlan, rng: random.Random
) -> tuple[dict[str, str], list[str]]:
    """Make the changes, and return the new files and the kinds of the changes made, in order."""
    changed, kinds = dict(files), list[str]()
    for number in range(plan.changes + 1):
        if number == plan.changes and changed != files:
            break  # otherwise one change has undone another, and there is one more attempt
        name = rng.choices(list(changed), [len(text) for text in changed.values()])[0]
        prefix = "" if len(files) == 1 else f"{name}:"
        kept = [part.removeprefix(prefix) for part in plan.keep if part.startswith(prefix)]
        text, kind = _edited((name, changed[name]), others, kept, plan, rng)
        if kind is not None:
            changed[name] = text
            kinds.append(kind)
    return changed, kinds


def _edited(
    file: tuple[str, str], others: Sequence[OtherProgram], kept: Sequence[str], plan: EditPlan, rng: random.Random
) -> tuple[str, str | None]:
    """Make one change to a file after which the program still compiles and has all its names.

    Returns:
        The new text and the kind of the change; the old text and None if no such change was found.
    """
    name, text = file
    source = parse(text, kept)
    if source is None:
        if REST in kept:
            return text, None
        block = rng.choice(evolvable_lines(text))
        changed = change_text_constant(text, block, _step(plan, rng), rng)
        return (text, None) if changed is None else (changed, "constants")
    for _ in range(_ATTEMPTS):
        kind = rng.choices(list(plan.weights), list(plan.weights.values()))[0]
        step = _step(plan, rng)
        changed = cross(source, name, others, rng) if kind == "crossover" else _CHANGES[kind](source, step, rng)
        if changed is not None and changed != text and _holds_together(source, changed):
            return changed, kind
    return text, None


def _holds_together(old: Source, changed: str) -> bool:
    """Whether a program compiles and reads no undefined names apart from those that the old one reads."""
    new = parse(changed)
    return new is not None and compiles(new.tree) and new.unbound <= old.unbound


def _step(plan: EditPlan, rng: random.Random) -> float:
    return float(10 ** rng.uniform(*plan.steps))
