"""How often the models of the world `families` do what lets a search leave a family."""

from __future__ import annotations

from dataclasses import dataclass, fields

from flowevolve._util.errors import InputError


@dataclass(frozen=True, slots=True)
class Chances:
    """Each number says how often its sentence is true, per reply unless it says otherwise.

    All were chosen, and none is measured. They were set once, before any algorithm was run, and say that a model mostly
    polishes what it has, mostly carries out a plan that it is given, and finds something new more often than not where
    nothing else is asked for.

    Raises:
        InputError: if a chance is not in [0, 1].
    """

    differs: float = 0.6
    """Asked for a program unlike others, the coder writes one of a family that is not among them; else it writes one of
    their families with other numbers.
    """
    carries: float = 0.8
    """A program that is written to a plan goes the plan's way."""
    usual: float = 0.8
    """Without a plan, or where a plan is not carried out, a program is of the seed's family."""
    follows: float = 0.3
    """A way that hints name, and that the parent does not go, is taken. So is a direction that they name for a number
    (per number that changes).
    """
    combines: float = 0.3
    """A part is taken over from another program that the prompt shows."""
    overlooks: float = 0.25
    """An agent does not recognize what a program does that is shown as code and not in words (per program)."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not 0 <= value <= 1:
                raise InputError(f"world families: {entry.name} is {value}, but has to be from 0 to 1")
