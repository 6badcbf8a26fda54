"""The ledger, which keeps a run within its budget.

A flow is opened only if there is room for it beside what was spent, what open flows have reserved and what the
algorithm's end will take. Work that takes more than its flow has reserved begins only if there is room for all of it.
So limits on what can be counted beforehand (rollouts, proposals, evaluations) are never exceeded.

Tokens and dollars can't be foreseen. They are reserved by what ended flows took, so only after a flow has ended, and
once they are spent no more calls are sent. So these limits are exceeded at most by what the calls in flight take;
`Ledger.overshoot` says by how much.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from flowevolve.core.budget import NOTHING, Budget, Cost, Dimension, OverBudgetError

_UNFORESEEN: tuple[Dimension, ...] = ("tokens", "dollars")
_COUNTED: tuple[Dimension, ...] = ("rollouts", "proposals", "evaluations")
RECENT_FLOWS = 256
"""The number of ended flows that estimates of tokens and dollars are based on."""
_Amounts = dict[Dimension, float]
"""A mutable amount of each thing that is limited."""


@dataclass(slots=True)
class _Open:
    """An open flow: what is left of its reservation, and what it has spent. ``usual`` is as in `Ledger.reserve`."""

    left: _Amounts
    spent: _Amounts
    usual: bool


@dataclass(slots=True)
class _Begun:
    """What is set aside for the work on an item: how much in all, and how much of it is still unspent."""

    whole: _Amounts
    left: _Amounts


class _Ended:
    """The amounts of tokens, or of dollars, that the most recently ended flows took."""

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
        """How long the run may last; None if that is not limited."""
        self.target_score = budget.target_score
        self._open: dict[int, _Open] = {}
        self._begun: dict[str, _Begun] = {}
        """What is set aside for work that has begun, by the item that is worked on."""
        self._ended = {name: _Ended() for name in _UNFORESEEN if name in self._limits}
        self.spent = Cost()
        self.kept_for_end = Cost()
        """What new work may not use for now, because it is reserved for the end of the run."""
        self.owed = Cost()
        """What was paid before the run was interrupted. It is charged when the work that it paid for is done again."""

    def limit(self, name: str) -> float | None:
        """The limit of this name, as in `Budget.by_name`; None if there is none."""
        others = {"seconds": self.seconds, "target_score": self.target_score}
        return dict[str, float | None]([*self._limits.items(), *others.items()]).get(name)

    def raise_limits(self, limits: Mapping[str, float]) -> None:
        """Raise each existing limit to the one given, if that is higher. Names are as in `Budget.by_name`."""
        self._limits = {name: max(limit, limits.get(name, limit)) for name, limit in self._limits.items()}
        if self.seconds is not None:
            self.seconds = max(self.seconds, limits.get("seconds", self.seconds))
        if self.target_score is not None:
            self.target_score = max(self.target_score, limits.get("target_score", self.target_score))

    def refusal(self, estimate: Cost, kept: Cost = NOTHING) -> Dimension | None:
        """The limit that leaves no room for a flow of this cost now, or None. ``kept`` is what has to be left over.

        If no other flow is open, only the flow's estimate counts, not what earlier flows took. Otherwise the last part
        of a budget, which is too small for a usual flow, would never be spent.
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
        """The parts of a cost that are limited."""
        return {dimension: cost.amount(dimension) for dimension in self._limits}

    def _reserved(self, dimension: Dimension) -> float:
        flows, foreseen = self._open.values(), dimension not in self._ended
        held = [flow.left[dimension] if foreseen else self._held(flow, dimension) for flow in flows]
        return sum(held) + sum([begun.left[dimension] for begun in self._begun.values()])

    def _held(self, flow: _Open, dimension: Dimension) -> float:
        left, ended = flow.left[dimension], self._ended.get(dimension)
        return left if ended is None or not flow.usual else max(left, ended.to_come(flow.spent[dimension]))

    def reserve(self, flow: int, estimate: Cost, *, usual: bool = True, spent: Cost = NOTHING) -> None:
        """Hold this much for a flow until it is charged or closed. ``spent`` is the part that was charged before.

        ``usual`` is False for a flow unlike the others: its cost does not predict theirs, and theirs do not predict its
        own.
        """
        self._open[flow] = _Open(self._limited(estimate.less(spent)), self._limited(spent), usual)

    def restore(self, spent: Cost, ended: Iterable[Cost]) -> None:
        """Take over from an interrupted run what it had spent, and what each of its last ended flows had taken."""
        self.spent = spent
        for flow in ended:
            self._note_ended(self._limited(flow))

    def begin(self, flow: int, item: str, cost: Cost) -> None:
        """Set aside what work on an item of a flow is about to spend. It is taken from the flow's reservation.

        Raises:
            OverBudgetError: if there is no room for the part that exceeds the flow's reservation.
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
        """What a flow has reserved, plus what is set aside for this item of the flow."""
        held, begun = self._open.get(flow), self._begun.get(item)
        reserved = 0.0 if held is None else self._held(held, dimension)
        return reserved + (0.0 if begun is None else begun.left[dimension])

    def end(self, item: str, cost: Cost) -> None:
        """Release what is left of ``cost``, which was set aside for an item.

        Anything else that is set aside for the item stays, as that work may still be under way.
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
        OverBudgetError: if a limit on tokens or dollars is used up by what was spent and what is owed.
        """
        for dimension in _UNFORESEEN:
            limit = self._limits.get(dimension)
            if limit is not None and (self.spent + self.owed).amount(dimension) >= limit:
                raise OverBudgetError(dimension, math.nextafter(limit, math.inf))

    def is_below(self, dimension: str, needed: float) -> bool:
        """Whether there is a limit in this dimension that is lower than ``needed``."""
        limit = self.limit(dimension)
        return limit is not None and limit < needed

    def charge(self, flow: int, cost: Cost, item: str = "") -> None:
        """Record what a flow has spent in the work on an item. The cost is taken from what is set aside for that work,
        then from the flow's reservation, as far as these suffice.
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
        """The spent share of the nearest limit after spending this much more; 0 if nothing is limited."""
        return self.share_of(self.spent + more)

    def affords(self, each: Cost) -> float | None:
        """How many more times this cost can be spent; None if nothing limits it."""
        left = [
            max(0.0, limit - self.spent.amount(name)) / amount
            for name, limit in self._limits.items()
            if (amount := each.amount(name))
        ]
        return min(left, default=None)

    def share_of(self, cost: Cost) -> float:
        """The largest fraction that a cost is of any limit; 0 if nothing is limited."""
        return max((cost.amount(name) / limit for name, limit in self._limits.items()), default=0.0)

    def overshoot(self) -> Mapping[Dimension, float]:
        """By how much each limit was exceeded, for those that were."""
        over = {name: self.spent.amount(name) - limit for name, limit in self._limits.items()}
        return {name: amount for name, amount in over.items() if amount > 0}


def _take(left: _Amounts, dimension: Dimension, amount: float) -> float:
    """Take an amount out of what is left, as far as that suffices; returns the rest of the amount."""
    taken = min(amount, left[dimension])
    left[dimension] -= taken
    return amount - taken
