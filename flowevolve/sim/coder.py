"""The coder of the world `code`: how it chooses what to change in a program, and how far."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flowevolve.programs.blocks import inside
from flowevolve.programs.features import syntax_error
from flowevolve.sim.code_expressions import change_calls, change_operators, grow
from flowevolve.sim.code_numbers import change_constants, change_loops, change_text_constant
from flowevolve.sim.code_source import Source, parse
from flowevolve.sim.code_structure import change_statements, cross, sources

Change = Callable[[Source, float, random.Random], str | None]
"""Makes another program, given how far numbers may go, relative to their size; None if there is nothing to change."""

_CHANGES: Mapping[str, Change] = {
    "constants": change_constants,
    "operators": change_operators,
    "calls": change_calls,
    "loops": change_loops,
    "statements": change_statements,
    "growth": grow,
}
PREFERRED, AVOIDED = 4.0, 0.25
"""What a hint makes of the weight of a kind of change."""
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Coder:
    """How good a coder is. ``weights`` are those of kinds of changes; how far a number may go, relative to its size, is
    10 to a power that lies in ``steps``.
    """

    weights: Mapping[str, float]
    changes: tuple[int, ...]
    """How many changes a reply may have; each as likely."""
    steps: tuple[float, float]
    broken: float
    """Of its replies, with the preset ``normal``."""


CODERS: Mapping[str, Coder] = {
    "small": Coder(
        {"constants": 6, "operators": 1, "calls": 1, "loops": 1, "statements": 1, "crossover": 2, "growth": 1},
        (1, 1, 2),
        (-3.0, -0.5),
        0.08,
    ),
    "medium": Coder(
        {"constants": 5, "operators": 1, "calls": 1, "loops": 1, "statements": 1, "crossover": 3, "growth": 1.5},
        (1, 1, 2),
        (-3.0, 0.0),
        0.05,
    ),
    "large": Coder(
        {"constants": 5, "operators": 1, "calls": 1, "loops": 1.5, "statements": 1, "crossover": 4, "growth": 2},
        (1, 2, 3),
        (-3.0, 0.3),
        0.02,
    ),
}
"""By a word in the model's name; a name with none of these words is that of a medium one."""


def coder_of(model: str) -> Coder:
    return next((coder for word, coder in CODERS.items() if word in model.lower()), CODERS["medium"])


@dataclass(frozen=True, slots=True)
class Work:
    """One reply's worth of changes: how many, and of what kinds with which weights."""

    weights: Mapping[str, float]
    changes: int
    steps: tuple[float, float]


def edit_files(
    files: Mapping[str, str], others: Sequence[Mapping[str, str]], work: Work, rng: random.Random
) -> tuple[dict[str, str], list[str]]:
    """The files after the work, and the kinds of the changes made, in order."""
    changed, kinds = dict(files), list[str]()
    for number in range(work.changes + 1):
        if number == work.changes and changed != files:
            break  # else a change was taken back by another
        name = rng.choices(list(changed), [len(text) for text in changed.values()])[0]
        text, kind = _edited(changed[name], [other[name] for other in others if name in other], work, rng)
        if kind is not None:
            changed[name] = text
            kinds.append(kind)
    return changed, kinds


def _edited(text: str, others: Sequence[str], work: Work, rng: random.Random) -> tuple[str, str | None]:
    """A program with one change that holds together, and the kind of it; None if none was found."""
    source = parse(text)
    if source is None:
        block = rng.choice(inside(text))
        changed = change_text_constant(text, block, _step(work, rng), rng)
        return (text, None) if changed is None else (changed, "constants")
    crossed = sources(others)
    for _ in range(_ATTEMPTS):
        kind = rng.choices(list(work.weights), list(work.weights.values()))[0]
        step = _step(work, rng)
        changed = cross(source, crossed, rng) if kind == "crossover" else _CHANGES[kind](source, step, rng)
        if changed is not None and changed != text and _holds_together(source, changed):
            return changed, kind
    return text, None


def _holds_together(old: Source, changed: str) -> bool:
    """Whether a program compiles and reads no names without a value, but for those that the old one reads."""
    new = parse(changed) if syntax_error(changed) is None else None
    return new is not None and new.unbound <= old.unbound


def _step(work: Work, rng: random.Random) -> float:
    return float(10 ** rng.uniform(*work.steps))
