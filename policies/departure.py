"""When items that wait at a gathering stage leave together: a `flowevolve.core.policies.Departure`."""

from __future__ import annotations

from dataclasses import dataclass

from flowevolve._util.errors import InputError
from flowevolve.core.policies import Waiting
from flowevolve.policies.opening import SHARE, is_opening


@dataclass(frozen=True, slots=True)
class Balance:
    """Items leave once the cost of making them has reached ``balance`` times the price of what follows, or once nothing
    is under way that could still join them.

    With a balance of 1, edits and their validations cost about the same in total. Costs are compared by tokens or, if
    these are not counted, by rollouts. With ``after``, items also wait while there are at least this many items at
    later stages.

    In the opening of a run, they leave at half the balance, and wait until the items that left before have ended.

    Raises:
        InputError: if the balance is not above 0.
    """

    balance: float = 1.0
    after: int | None = None

    def __post_init__(self) -> None:
        if self.balance <= 0:
            raise InputError(f"algorithm.balance is {self.balance:g}, but has to be above 0")

    def leaves(self, waiting: Waiting) -> bool:
        opening = is_opening(waiting.validated)
        after = 1 if opening else self.after
        if after is not None and waiting.downstream >= after:
            return False
        if not waiting.upstream:
            return True
        price = waiting.price.tokens or waiting.price.rollouts
        spent = waiting.spent.tokens if waiting.price.tokens else waiting.spent.rollouts
        return 0 < self.balance * (SHARE if opening else 1.0) * price <= spent
