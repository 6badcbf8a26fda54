"""What a run's events and calls say about its budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from bench.simtest.rules import Rule
from flowevolve.core.budget import Cost
from flowevolve.core.calls import HELD_OUT, CallRecord
from flowevolve.core.event_kinds import BudgetRefused
from flowevolve.core.model import EmbedRequest


class SpendingBooks:
    """What was spent. ``fault`` is called with each rule that was broken, and what broke it."""

    def __init__(self, fault: Callable[[Rule, str], None]) -> None:
        self.limits: Mapping[str, float] = {}
        self.spent = Cost()
        """What the work that has ended has spent."""
        self.tokens = 0
        """The tokens of all calls that the budget pays for."""
        self.refused: list[BudgetRefused] = []
        self._paid: Counter[tuple[object, ...]] = Counter()
        self._fault = fault

    def amount(self, dimension: str) -> float:
        """How much of a dimension was spent: tokens by all calls so far, everything else by work that has ended."""
        amount: float = self.tokens if dimension == "tokens" else getattr(self.spent, dimension)
        return amount

    def charge(self, cost: Cost) -> None:
        self.spent += cost
        for name in ("rollouts", "proposals", "evaluations"):
            limit = self.limits.get(name)
            if limit is not None and getattr(self.spent, name) > limit:
                self._fault("budget", f"{getattr(self.spent, name)} {name} are spent, of {limit:g}")

    def call(self, call: CallRecord) -> None:
        scope, request = call.scope, call.request
        usage = call.failed_usage if call.reply is None else call.reply.usage
        if min(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) < 0:
            self._fault("counters", f"a call of {scope.stage} took {usage}")
        if call.cached:
            return
        self.tokens += usage.total_tokens if scope.stage != HELD_OUT else 0
        if call.reply is not None:
            asked = request.texts if isinstance(request, EmbedRequest) else request.messages
            key = (scope.stage, scope.item, scope.index, asked)
            self._paid[key] += 1
            if self._paid[key] > 1:
                self._fault("paid twice", f"{scope.stage} paid for call {scope.index} of item {scope.item} again")
