"""Combee's entry stage: flows come in rounds, one parent each, so that their reflections are about the same texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from flowevolve._util.json_types import JSON
from flowevolve.algorithms.gepa.config import GEPAConfig
from flowevolve.algorithms.gepa.prune import Pruning
from flowevolve.algorithms.gepa.select import MergeSchedule, Plan, Select
from flowevolve.archives.base import CandidateArchive
from flowevolve.core.context import StageContext
from flowevolve.policies.selection import ComponentSelection, Selection
from flowevolve.stages import Head, Remeasuring


class RoundPlan(Plan):
    """A plan, and how many rewrites its round has left after it."""

    left: int = 0


class LaterPlan(RoundPlan):
    """The plan of a rewrite that is not the first of its round. In its event, the fields that it shares with the first
    one come first.
    """

    def to_json(self) -> dict[str, JSON]:
        data = super().to_json()
        return {name: data.pop(name) for name in ("parents", "ancestor", "components", "cursor")} | data


class SelectRounds(Select):
    """Chooses parent and components once for a round of ``size()`` rewrites, and a new minibatch for each rewrite. A
    round ends early if its parent was a group under validation that has failed, or if somebody vetoes the parent.

    Every ``gepa.selected`` event says how many rewrites of the round are ``left``, so that a resumed run continues it.
    """

    plan_type: ClassVar[type[RoundPlan]] = RoundPlan

    def __init__(
        self,
        archive: CandidateArchive,
        schedule: MergeSchedule,
        config: GEPAConfig,
        selection: Selection,
        components: ComponentSelection,
        train_ids: tuple[str, ...],
        head: Head | None = None,
        pruning: Pruning | None = None,
        remeasuring: Remeasuring | None = None,
        *,
        size: Callable[[], int],
    ) -> None:
        super().__init__(archive, schedule, config, selection, components, train_ids, head, pruning, remeasuring)
        self._size = size
        self._last: RoundPlan | None = None
        """The plan of the latest rewrite."""

    def _choose_rewrite(self, context: StageContext) -> Plan:
        last = self._last
        if last is None or not last.left or not self._may_build_on(last.parents[0], context):
            return super()._choose_rewrite(context).model_copy(update={"left": self._size() - 1})
        return LaterPlan(
            parents=last.parents,
            ancestor=None,
            looked_for_merge=self._schedule.due,
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
