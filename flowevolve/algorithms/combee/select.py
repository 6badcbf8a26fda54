"""Combee's entry stage: flows come in rounds, one parent each, so that their reflections are about the same texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from flowevolve.algorithms.gepa.select import Plan, Select
from flowevolve.core.context import StageContext


class RoundPlan(Plan):
    """A plan, and how many rewrites its round has left after it."""

    left: int = 0


@dataclass(eq=False)
class SelectRounds(Select):
    """Chooses parent and components once for a round of ``size()`` rewrites, and a new minibatch for each rewrite. A
    round ends early if its parent was a group under validation that has failed, or if somebody vetoes the parent.

    Every ``gepa.selected`` event says how many rewrites of the round are ``left``, so that a resumed run continues it.
    """

    plan_type: ClassVar[type[RoundPlan]] = RoundPlan

    size: Callable[[], int] = field(kw_only=True)
    _last: RoundPlan | None = field(default=None, init=False)
    """The plan of the latest rewrite."""

    def _choose_rewrite(self, context: StageContext) -> Plan:
        last = self._last
        if last is None or not last.left or not self._may_build_on(last.parents[0], context):
            return super()._choose_rewrite(context).model_copy(update={"left": self.size() - 1})
        return RoundPlan(
            parents=last.parents,
            ancestor=None,
            looked_for_merge=self.schedule.due,
            components=last.components,
            cursor=last.cursor,
            batch=self._next_batch(context),
            version=context.pool.version,
            left=last.left - 1,
        )

    def _may_build_on(self, parent: str, context: StageContext) -> bool:
        return context.pool.keeps(parent) and not context.pool.vetoed(parent)

    def _note(self, plan: Plan, flow: int) -> None:
        super()._note(plan, flow)
        if isinstance(plan, RoundPlan) and plan.ancestor is None and not plan.removed and not plan.again:
            self._last = plan
