"""Budgets: the limits that end a run, and what work costs of what they count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import Field

from flowevolve._util.errors import FlowevolveError
from flowevolve._util.json_types import JSON
from flowevolve._util.settings import Settings
from flowevolve._util.values import value
from flowevolve.core.payload_kinds import payload

Dimension = Literal["rollouts", "proposals", "tokens", "dollars", "evaluations"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
"""What a budget counts: the names of the fields of a `Cost`, and of limits of a `Budget`."""


class OverBudgetError(FlowevolveError):
    """The budget has no room for work that was about to begin; a limit of ``needed`` would be enough.

    ``alone`` says that nothing else is spent or set aside, so that there never was room for this work.
    """

    def __init__(self, dimension: Dimension, needed: float, *, alone: bool = False) -> None:
        super().__init__(f"budget.{dimension} has no room for it")
        self.dimension = dimension
        self.needed = needed
        self.alone = alone


class Budget(Settings):
    """Limits of a run. What is left out is not limited. Times add up: ``Budget(hours=1, minutes=30)``."""

    hours: float | None = Field(default=None, gt=0)
    minutes: float | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    rollouts: int | None = Field(default=None, gt=0)
    """Examples run, the seed's validation included."""
    proposals: int | None = Field(default=None, gt=0)
    """New artifacts written, whether accepted or not."""
    tokens: int | None = Field(default=None, gt=0)
    """Prompt and completion tokens over all roles."""
    dollars: float | None = Field(default=None, gt=0)
    evaluations: int | None = Field(default=None, gt=0)
    """Candidates evaluated, fully or in part, the seed included."""
    target_score: float | None = Field(default=None, allow_inf_nan=False)
    """Stop as soon as a confirmed candidate's mean validation score reaches this."""

    def time_limit(self) -> float | None:
        """The time limit in seconds; None if there is none."""
        parts = ((self.hours, 3600.0), (self.minutes, 60.0), (self.seconds, 1.0))
        given = [amount * unit for amount, unit in parts if amount is not None]
        return sum(given) if given else None

    def by_name(self) -> Mapping[str, float]:
        """All limits that are set, with the time limit as ``seconds``, and the target score."""
        others = {"seconds": self.time_limit(), "target_score": self.target_score}
        return {name: limit for name, limit in (*self.limits().items(), *others.items()) if limit is not None}

    def raised(self, limits: Mapping[str, float]) -> Budget:
        """This budget with each of its limits raised to the one given, if that is higher. Names are as in `by_name`."""
        mine = self.by_name()
        return Budget.model_validate({name: max(limit, limits.get(name, limit)) for name, limit in mine.items()})

    def limits(self) -> Mapping[Dimension, float]:
        """The limits on what the ledger counts, so without time and target score."""
        return {name: limit for name in DIMENSIONS if (limit := getattr(self, name)) is not None}


@payload
@value
class Cost:
    """An amount of each thing a budget counts."""

    rollouts: int = 0
    proposals: int = 0
    tokens: int = 0
    dollars: float = 0.0
    evaluations: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.rollouts + other.rollouts,
            self.proposals + other.proposals,
            self.tokens + other.tokens,
            self.dollars + other.dollars,
            self.evaluations + other.evaluations,
        )

    def less(self, other: Cost) -> Cost:
        """This minus ``other``, with 0 in place of what would be negative."""
        return Cost(
            self.rollouts - other.rollouts if self.rollouts > other.rollouts else 0,
            self.proposals - other.proposals if self.proposals > other.proposals else 0,
            self.tokens - other.tokens if self.tokens > other.tokens else 0,
            self.dollars - other.dollars if self.dollars > other.dollars else 0.0,
            self.evaluations - other.evaluations if self.evaluations > other.evaluations else 0,
        )

    def to_json(self) -> dict[str, JSON]:
        """The amounts that are not 0, by name."""
        return {name: amount for name in DIMENSIONS if (amount := getattr(self, name))}

    def amount(self, dimension: Dimension) -> float:
        amount: float = getattr(self, dimension)
        return amount


NOTHING = Cost()
