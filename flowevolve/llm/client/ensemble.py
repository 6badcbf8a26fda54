"""Ensembles: several models behind one role, of which each call uses one, chosen by a bandit or by weight."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from typing import Protocol

from flowevolve._util.errors import InputError
from flowevolve.core.calls import CallScope
from flowevolve.llm.client.model import Model


@dataclass(slots=True)
class Arm:
    """One model of an ensemble as a bandit's arm: its weight, and what its calls cost and gained so far."""

    weight: float
    drawn: int = 0
    """Calls, including cancelled ones and those in progress."""
    judged: int = 0
    """Outcomes: one for each candidate that a call produced, or one for a call that produced none."""
    gain: float = 0.0
    """Sum of the outcomes, each from 0 to 1."""
    paid: int = 0
    """Calls whose cost is known."""
    dollars: float = 0.0
    """Sum of these costs."""


class Choice(Protocol):
    """Decides which model answers a call. A pure policy."""

    def choose(self, arms: Sequence[Arm], draw: float) -> int:
        """The index of an arm. ``draw`` is uniform over [0, 1) and depends only on the call's work."""
        ...


class ByWeight:
    """Draws each model in proportion to its weight, whatever the outcomes of earlier calls."""

    def choose(self, arms: Sequence[Arm], draw: float) -> int:
        bounds = list(accumulate(arm.weight for arm in arms))
        return min(bisect_right(bounds, draw * bounds[-1]), len(arms) - 1)


class Ensemble:
    """The models of one role, identified by their names.

    Raises:
        InputError: if there is no model, a weight is negative, or none is positive.
    """

    def __init__(self, members: Sequence[Model], weights: Sequence[float], choice: Choice | None = None) -> None:
        if not members or min(weights) < 0 or sum(weights) <= 0:
            raise InputError(
                "an ensemble needs models, of which none has a weight below 0 and at least one has a weight above 0"
            )
        self.members = tuple(members)
        self._arms = [Arm(weight) for weight in weights]
        self._choice = ByWeight() if choice is None else choice

    def draw(self, run_seed: int, scope: CallScope) -> Model:
        """The model for a call."""
        place = self._choice.choose(self._arms, _fraction(run_seed, scope))
        self._arms[place].drawn += 1
        return self.members[place]

    def drawn(self, model: str) -> None:
        """Count a call that was drawn before the run was interrupted."""
        self._arm(model).drawn += 1

    def paid(self, model: str, dollars: float) -> None:
        """Note the price of a call of this model."""
        arm = self._arm(model)
        arm.paid += 1
        arm.dollars += dollars

    def judged(self, model: str, gain: float) -> None:
        """Note an outcome of a call of this model: a gain from 0 to 1."""
        arm = self._arm(model)
        arm.judged += 1
        arm.gain += gain

    def _arm(self, model: str) -> Arm:
        return next(arm for arm, member in zip(self._arms, self.members, strict=True) if member.name == model)


def _fraction(run_seed: int, scope: CallScope) -> float:
    """Uniform over [0, 1): the same for the same work, on every machine and whatever else runs."""
    key = f"{run_seed}\x1f{scope.stage}\x1f{scope.item}\x1f{scope.index}".encode("utf-8", "surrogatepass")
    return (int.from_bytes(blake2b(key, digest_size=8, person=b"model").digest(), "big") >> 11) / 2**53
