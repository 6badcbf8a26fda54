"""Budgets: the limits that end a run, and the ledger that keeps to them.

A flow is opened only while what was spent, plus what open flows have reserved and what the algorithm's end will take,
leaves room for it. Work that takes more than its flow has reserved is begun only if there is room for all of it. So
what can be counted before it is done (rollouts, proposals, evaluations) is never exceeded.

Nobody can foretell tokens and dollars. They are reserved by what ended flows took, so not before a flow has ended, and
once they are spent no more calls are sent. So they are exceeded by what the calls in flight take, at most;
`Ledger.overshoot` says how much it was.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
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
_UNFORESEEN: tuple[Dimension, ...] = ("tokens", "dollars")
_COUNTED: tuple[Dimension, ...] = ("rollouts", "proposals", "evaluations")
RECENT_FLOWS = 256
"""The number of ended flows that estimates of tokens and dollars are based on."""


class OverBudgetError(FlowevolveError):
    """There is no room in the budget for work that was about to begin; with a limit of ``needed`` there would be.

    ``alone`` says that nothing else is spent or set aside: then there never was room for it.
    """

    def __init__(self, dimension: Dimension, needed: float, *, alone: bool = False) -> None:
        super().__init__(f"budget.{dimension} has no room for it")
        self.dimension = dimension
        self.needed = needed
        self.alone = alone


class Budget(Settings):
    """Limits of a run; a limit left out does not bound it. Times add up: ``Budget(hours=1, minutes=30)``."""

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
        """Seconds, or None without a limit in time."""
        parts = ((self.hours, 3600.0), (self.minutes, 60.0), (self.seconds, 1.0))
        given = [amount * unit for amount, unit in parts if amount is not None]
        return sum(given) if given else None

    def by_name(self) -> Mapping[str, float]:
        """All limits that are set, those in time as one of seconds, and the target score."""
        others = {"seconds": self.time_limit(), "target_score": self.target_score}
        return {name: limit for name, limit in (*self.limits().items(), *others.items()) if limit is not None}

    def raised(self, limits: Mapping[str, float]) -> Budget:
        """The budget with those of these limits, named as in `by_name`, that it has and that are lower in it."""
        mine = self.by_name()
        return Budget.model_validate({name: max(limit, limits.get(name, limit)) for name, limit in mine.items()})

    def limits(self) -> Mapping[Dimension, float]:
        """The limits of what the ledger counts."""
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
_Amounts = dict[Dimension, float]
"""An amount of each thing that is limited, which changes from call to call."""


@dataclass(slots=True)
class _Open:
    """An open flow: what is left of its estimate, and what it has spent. ``usual`` is as in `Ledger.reserve`."""

    left: _Amounts
    spent: _Amounts
    usual: bool


@dataclass(slots=True)
class _Begun:
    """What is set aside for the work on an item: how much in all, and what of it is left to be spent."""

    whole: _Amounts
    left: _Amounts


class _Ended:
    """What the flows that ended last took of tokens, or of dollars."""

    def __init__(self) -> None:
        self._recent = deque[float](maxlen=RECENT_FLOWS)
        self._amounts: list[float] = []
        """The same amounts, sorted."""
        self._sums = [0.0]
        """The sums of the first 0, 1, 2, … of the sorted amounts."""

    def add(self, amount: float) -> None:
        if len(self._recent) == RECENT_FLOWS:
            del self._amounts[bisect_left(self._amounts, self._recent[0])]
        self._recent.append(amount)
        insort(self._amounts, amount)
        self._sums = [0.0, *accumulate(self._amounts)]

    def to_come(self, spent: float) -> float:
        """What a flow that has taken ``spent`` will still take: the mean of those that took more, minus ``spent``."""
        below = bisect_right(self._amounts, spent)
        more = len(self._amounts) - below
        return (self._sums[-1] - self._sums[below]) / more - spent if more else 0.0


class Ledger:
    """What was spent and what open flows may still spend."""

    def __init__(self, budget: Budget) -> None:
        self._limits = dict(budget.limits())
        self.seconds = budget.time_limit()
        """How long the run may last; None: as long as it likes."""
        self.target_score = budget.target_score
        self._open: dict[int, _Open] = {}
        self._begun: dict[str, _Begun] = {}
        """What is set aside for work that has begun, by the item that it is on."""
        self._ended = {name: _Ended() for name in _UNFORESEEN if name in self._limits}
        self.spent = Cost()
        self.kept_for_end = Cost()
        """What no work may be begun with for now."""
        self.owed = Cost()
        """What was paid before the run was interrupted, and is charged when the work that it was for comes to it."""

    def limit(self, name: str) -> float | None:
        """The limit of this name, as `Budget.by_name` has it; None where nothing is limited."""
        others = {"seconds": self.seconds, "target_score": self.target_score}
        return next((limit for each, limit in (*self._limits.items(), *others.items()) if each == name), None)

    def raise_limits(self, limits: Mapping[str, float]) -> None:
        """Raise those of these limits, named as in `Budget.by_name`, that there are and that are lower."""
        self._limits = {name: max(limit, limits.get(name, limit)) for name, limit in self._limits.items()}
        if self.seconds is not None:
            self.seconds = max(self.seconds, limits.get("seconds", self.seconds))
        if self.target_score is not None:
            self.target_score = max(self.target_score, limits.get("target_score", self.target_score))

    def refusal(self, estimate: Cost, kept: Cost = NOTHING) -> Dimension | None:
        """The limit for which a flow of this cost can't be opened now, or None if it can; ``kept`` has to remain, too.

        If no other flow is open, only its estimate counts, and not what flows took before. Otherwise the last part of a
        budget, which is too little for a usual flow, would never be spent.
        """
        new = _Open(self._limited(estimate), self._limited(NOTHING), usual=bool(self._open))
        kept += self.kept_for_end
        for dimension, limit in self._limits.items():
            held = self._reserved(dimension) + self._held(new, dimension)
            spent = (self.spent + self.owed).amount(dimension)
            if spent >= limit or spent + held + kept.amount(dimension) > limit:
                return dimension
        return None

    def _limited(self, cost: Cost) -> _Amounts:
        """What a cost has of each thing that is limited."""
        return {dimension: cost.amount(dimension) for dimension in self._limits}

    def _reserved(self, dimension: Dimension) -> float:
        flows, foreseen = self._open.values(), dimension not in self._ended
        held = [flow.left[dimension] if foreseen else self._held(flow, dimension) for flow in flows]
        return sum(held) + sum([begun.left[dimension] for begun in self._begun.values()])

    def _held(self, flow: _Open, dimension: Dimension) -> float:
        left, ended = flow.left[dimension], self._ended.get(dimension)
        return left if ended is None or not flow.usual else max(left, ended.to_come(flow.spent[dimension]))

    def reserve(self, flow: int, estimate: Cost, *, usual: bool = True, spent: Cost = NOTHING) -> None:
        """Hold this much for a flow until it is charged or closed; ``spent`` of it is charged already.

        ``usual`` says whether what this flow takes and what other flows took tell something of each other.
        """
        self._open[flow] = _Open(self._limited(estimate.less(spent)), self._limited(spent), usual)

    def restore(self, spent: Cost, ended: Iterable[Cost]) -> None:
        """Take over from an interrupted run what it had spent, and what each of the flows that ended last had taken."""
        self.spent = spent
        for flow in ended:
            self._note_ended(self._limited(flow))

    def begin(self, flow: int, item: str, cost: Cost) -> None:
        """Set aside what work on an item of a flow is about to spend; it comes out of what the flow has reserved.

        Raises:
            OverBudgetError: if there is no room for what the flow has not reserved.
        """
        held, needs = self._open.get(flow), self._limited(cost)
        for dimension in _COUNTED:
            limit = self._limits.get(dimension)
            if limit is None:
                continue
            more = needs[dimension] if held is None else max(needs[dimension] - held.left[dimension], 0)
            if not more:
                continue
            needed = self.spent.amount(dimension) + self._reserved(dimension) + more
            kept = self.kept_for_end.amount(dimension)
            if needed + kept > limit:
                alone = needed == more + self._own(flow, item, dimension)
                raise OverBudgetError(dimension, needed + kept, alone=alone)
        begun = self._begun.setdefault(item, _Begun(self._limited(NOTHING), self._limited(NOTHING)))
        for dimension, amount in needs.items():
            if held is not None:
                _take(held.left, dimension, amount)
            begun.whole[dimension] += amount
            begun.left[dimension] += amount

    def _own(self, flow: int, item: str, dimension: Dimension) -> float:
        """What a flow has reserved, and what is set aside for this item of it."""
        held, begun = self._open.get(flow), self._begun.get(item)
        reserved = 0.0 if held is None else self._held(held, dimension)
        return reserved + (0.0 if begun is None else begun.left[dimension])

    def end(self, item: str, cost: Cost) -> None:
        """Release what is left of so much that was set aside for an item, and nothing of what else is set aside for
        it: that may be under way.
        """
        begun = self._begun.get(item)
        if begun is None:
            return
        for dimension, amount in self._limited(cost).items():
            _take(begun.whole, dimension, amount)
            begun.left[dimension] = min(begun.left[dimension], begun.whole[dimension])
        if not any(begun.whole.values()):
            del self._begun[item]

    def check_unforeseen(self) -> None:
        """Raises:
        OverBudgetError: if tokens or dollars are spent, or owed.
        """
        for dimension in _UNFORESEEN:
            limit = self._limits.get(dimension)
            if limit is not None and (self.spent + self.owed).amount(dimension) >= limit:
                raise OverBudgetError(dimension, math.nextafter(limit, math.inf))

    def is_below(self, dimension: str, needed: float) -> bool:
        """Whether there is a limit in this dimension, and it is lower than this."""
        return any(name == dimension and limit < needed for name, limit in self._limits.items())

    def charge(self, flow: int, cost: Cost, item: str = "") -> None:
        """Record what a flow has spent, by work on an item. It comes out of what is set aside for that and then out of
        the flow's reservation, as far as these go.
        """
        self.spent += cost
        held, begun = self._open.get(flow), self._begun.get(item)
        for dimension in self._limits:
            amount = cost.amount(dimension)
            if not amount:
                continue
            beyond = amount if begun is None else _take(begun.left, dimension, amount)
            if held is not None:
                _take(held.left, dimension, beyond)
                held.spent[dimension] += amount

    def close(self, flow: int) -> None:
        """Release what is left of a flow's reservation."""
        held = self._open.pop(flow, None)
        if held is not None and held.usual:
            self._note_ended(held.spent)

    def _note_ended(self, spent: _Amounts) -> None:
        for dimension, ended in self._ended.items():
            ended.add(spent[dimension])

    def share(self, more: Cost) -> float:
        """The share of the nearest limit that is spent after spending this much more; 0 if nothing is limited."""
        return self.part(self.spent + more)

    def affords(self, each: Cost) -> float | None:
        """How many more times so much can be spent; None if nothing limits it."""
        left = [
            max(0.0, limit - self.spent.amount(name)) / amount
            for name, limit in self._limits.items()
            if (amount := each.amount(name))
        ]
        return min(left, default=None)

    def part(self, cost: Cost) -> float:
        """The largest of the shares that a cost is of the limits; 0 if nothing is limited."""
        return max((cost.amount(name) / limit for name, limit in self._limits.items()), default=0.0)

    def overshoot(self) -> Mapping[Dimension, float]:
        """By how much each limit that was passed was passed."""
        over = {name: self.spent.amount(name) - limit for name, limit in self._limits.items()}
        return {name: amount for name, amount in over.items() if amount > 0}


def _take(left: _Amounts, dimension: Dimension, amount: float) -> float:
    """Take an amount out of what is left, as far as that goes; returns what goes beyond it."""
    taken = min(amount, left[dimension])
    left[dimension] -= taken
    return amount - taken
