"""GEPA's entry stage: what the next flow works on, a rewrite of one parent or a merge of two."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from flowevolve.algorithms.gepa.config import GEPAConfig
from flowevolve.algorithms.gepa.merge import find_merge, stratified_ids
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.budget import Cost
from flowevolve.context import StageContext
from flowevolve.item import Item
from flowevolve.policies.batching import EpochBatches
from flowevolve.policies.selection import ComponentSelection, Selection
from flowevolve.pool import Add, Candidate, Move, Update
from flowevolve.stage import Emit
from flowevolve.stages.payloads import Proposed, Selected


class MergeSchedule:
    """When a merge is due: after a rewrite was confirmed, as long as merges are left. A function of the log."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._operators: dict[str, str] = {}
        self.due = False

    def apply(self, update: Update) -> None:
        for change in update.changes:
            match change:
                case Add(candidate=candidate, status="confirmed"):
                    self._confirmed(candidate.operator)
                case Add(candidate=candidate, status="speculative"):
                    self._operators[candidate.id] = candidate.operator
                case Move(candidate_id=name, status=status):
                    operator = self._operators.pop(name)
                    if status == "confirmed":
                        self._confirmed(operator)
                case _:
                    pass

    def _confirmed(self, operator: str) -> None:
        if operator == "merge":
            self._left -= 1
        elif operator != "seed":
            self.due = self._left > 0


class Select:
    """Picks parent, components and minibatch.

    Its cursors and its count of rewrites, which numbers the minibatches, are rebuilt from the ``gepa.selected`` events:
    there is one for every rewrite. A flow that merges draws no minibatch, so none is skipped.
    """

    def __init__(
        self,
        archive: ParetoArchive,
        schedule: MergeSchedule,
        config: GEPAConfig,
        selection: Selection,
        components: ComponentSelection,
        train_ids: tuple[str, ...],
    ) -> None:
        self._archive = archive
        self._schedule = schedule
        self._config = config
        self._selection = selection
        self._components = components
        self._train_ids = train_ids
        self._batches: EpochBatches | None = None
        self._rewrites = 0
        self._cursors: dict[str, int] = {}
        self._merged: set[tuple[str, str, str]] = set()

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        merge = self._merge(context) if self._schedule.due else None
        yield merge if merge is not None else self._rewrite(context)

    def _rewrite(self, context: StageContext) -> Emit:
        parent = self._selection.select(self._archive, context.random)
        names, cursor = self._components.select(list(parent.artifact), self._cursor(parent))
        self._cursors[parent.id] = cursor
        if self._batches is None:
            self._batches = EpochBatches(
                self._train_ids, self._config.minibatch, lambda epoch: context.derive_random("epoch", epoch)
            )
        batch = self._batches.batch(self._rewrites)
        self._rewrites += 1
        context.log("gepa.selected", parent=parent.id, components=list(names), batch=list(batch))
        return Emit(Selected(parent, names, batch), to="generate", version=context.pool.version, derives=(parent.id,))

    def _cursor(self, candidate: Candidate) -> int:
        """A candidate's place in the round; a new one starts where the furthest of its parents is."""
        if candidate.id not in self._cursors:
            inherited = [self._cursors.get(parent, 0) for parent in candidate.parents]
            self._cursors[candidate.id] = max(inherited, default=0)
        return self._cursors[candidate.id]

    def _merge(self, context: StageContext) -> Emit | None:
        self._schedule.due = False
        merge = find_merge(self._archive.confirmed, context.pool.__getitem__, frozenset(self._merged), context.random)
        if merge is None:
            return None
        self._merged.add((merge.first.id, merge.second.id, merge.ancestor.id))
        context.spend(Cost(proposals=1))
        candidate = context.propose(merge.artifact, parents=[merge.first, merge.second], operator="merge")
        ids = stratified_ids(merge.first, merge.second, self._config.merge_sample, context.random)
        better = max((merge.first, merge.second), key=lambda parent: sum(parent.scores[name] for name in ids))
        context.log("gepa.merged", parents=list(candidate.parents), ancestor=merge.ancestor.id, batch=list(ids))
        return Emit(
            Proposed(candidate, ids, tuple(better.scores[name] for name in ids), split="val"),
            to="screen",
            version=context.pool.version,
            derives=candidate.parents,
        )
