"""Combee's entry stage: flows come in rounds, one parent each, so that their reflections are about the same texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from flowevolve.algorithms.gepa.config import GEPAConfig
from flowevolve.algorithms.gepa.select import MergeSchedule, Select
from flowevolve.archives.base import CandidateArchive
from flowevolve.context import StageContext
from flowevolve.llm.types import JSON
from flowevolve.policies.selection import ComponentSelection, Selection


class SelectRounds(Select):
    """Parent and components are chosen for a round of ``size()`` rewrites, the minibatch for each of them.

    What is ``left`` of a round after a rewrite stands in its ``gepa.selected`` event, from which a run goes on.
    """

    def __init__(
        self,
        archive: CandidateArchive,
        schedule: MergeSchedule,
        config: GEPAConfig,
        selection: Selection,
        components: ComponentSelection,
        train_ids: tuple[str, ...],
        *,
        size: Callable[[], int],
    ) -> None:
        super().__init__(archive, schedule, config, selection, components, train_ids)
        self._size = size
        self._round: Mapping[str, JSON] = {}
        """The last rewrite chosen."""
        self._left = 0

    def _choose_rewrite(self, context: StageContext) -> dict[str, JSON]:
        if not self._left:
            return {**super()._choose_rewrite(context), "left": self._size() - 1}
        return {
            **self._round,
            "looked_for_merge": self._schedule.due,
            "batch": self._next_batch(context),
            "version": context.pool.version,
            "left": self._left - 1,
        }

    def _note(self, chosen: Mapping[str, JSON]) -> None:
        super()._note(chosen)
        if not chosen["ancestor"]:
            self._left = cast(int, chosen["left"])
            self._round = {name: chosen[name] for name in ("parents", "ancestor", "components", "cursor")}
