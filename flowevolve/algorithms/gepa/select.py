"""GEPA's entry stage: what the next flow works on, a rewrite of one parent or a merge of two."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import cast

from flowevolve.algorithms.gepa.config import GEPAConfig
from flowevolve.algorithms.gepa.merge import Merge, find_merge, join, stratified_ids
from flowevolve.archives.base import CandidateArchive
from flowevolve.budget import Cost
from flowevolve.context import StageContext
from flowevolve.events import Event
from flowevolve.item import Item
from flowevolve.item_ids import flow_of
from flowevolve.llm.types import JSON
from flowevolve.policies.batching import EpochBatches
from flowevolve.policies.selection import ComponentSelection, Selection
from flowevolve.pool import Add, Move, Update
from flowevolve.stage import Emit
from flowevolve.stages.payloads import Proposed, Selected


class MergeSchedule:
    """When a merge is due: after a rewrite was confirmed, as long as merges are left beside those on their way.

    A function of the log. What becomes of a merge in its flow is that merge, also where it is repaired.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._open: set[int] = set()
        """Flows that merge and have had nothing confirmed."""
        self._operators: dict[str, str] = {}
        self.due = False

    def begin(self, flow: int) -> None:
        """A flow merges."""
        self._open.add(flow)

    def end(self, flow: int) -> None:
        """A flow is over."""
        self._open.discard(flow)

    def apply(self, update: Update) -> None:
        flow = flow_of(update.cause)
        for change in update.changes:
            match change:
                case Add(candidate=candidate, status="confirmed"):
                    self._confirmed(candidate.operator, flow)
                case Add(candidate=candidate, status="speculative"):
                    self._operators[candidate.id] = candidate.operator
                case Move(candidate_id=name, status=status):
                    operator = self._operators.pop(name)
                    if status == "confirmed":
                        self._confirmed(operator, flow)
                case _:
                    pass

    def _confirmed(self, operator: str, flow: int) -> None:
        if operator == "merge" or flow in self._open:
            self._left -= 1
            self._open.discard(flow)
        elif operator != "seed":
            self.due = self._left > len(self._open)


class Cursors:
    """Candidates' places in the round of components. A function of the log: of commits and ``gepa.selected`` events."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def apply(self, update: Update) -> None:
        """A new candidate starts where the furthest of its parents is when it is added."""
        for candidate in update.added():
            self._places[candidate.id] = max(map(self.of, candidate.parents), default=0)

    def of(self, candidate_id: str) -> int:
        return self._places.get(candidate_id, 0)

    def move(self, candidate_id: str, place: int) -> None:
        self._places[candidate_id] = place


class Select:
    """Picks parent, components and minibatch.

    The cursors and its count of rewrites, which numbers the minibatches, are rebuilt from the ``gepa.selected`` events:
    there is one for every flow. A flow that merges draws no minibatch, so none is skipped.
    """

    def __init__(
        self,
        archive: CandidateArchive,
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
        self.cursors = Cursors()
        self._merged_before: set[tuple[str, str, str]] = set()

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        chosen = context.decide("gepa.selected", lambda: self._choose(context))
        yield self._merged(chosen, context) if chosen["ancestor"] else self._rewrite(chosen, context)

    def recall(self, event: Event) -> None:
        """Rebuild cursors, counts and what was merged."""
        if event.kind == "gepa.selected":
            self._record(event.data, flow_of(str(event.data["item"])))
        elif event.kind == "flow.close":
            self._schedule.end(cast(int, event.data["flow"]))

    def _choose(self, context: StageContext) -> Mapping[str, JSON]:
        merge = self._find_merge(context) if self._schedule.due else None
        chosen = self._choose_rewrite(context) if merge is None else self._choose_merge(merge, context)
        self._record(chosen, flow_of(context.item_id))
        return chosen

    def _record(self, chosen: Mapping[str, JSON], flow: int) -> None:
        if chosen["ancestor"]:
            self._schedule.begin(flow)
        self._note(chosen)

    def _note(self, chosen: Mapping[str, JSON]) -> None:
        parents = cast("list[str]", chosen["parents"])
        if chosen["looked_for_merge"]:
            self._schedule.due = False
        if chosen["ancestor"]:
            self._merged_before.add((parents[0], parents[1], str(chosen["ancestor"])))
        else:
            self._rewrites += 1
            self.cursors.move(parents[0], cast(int, chosen["cursor"]))

    # Rewrites

    def _choose_rewrite(self, context: StageContext) -> dict[str, JSON]:
        parent = self._selection.select(self._archive, context.random)
        names, cursor = self._components.select(list(parent.artifact), self.cursors.of(parent.id))
        return {
            "parents": [parent.id],
            "ancestor": None,
            "looked_for_merge": self._schedule.due,
            "components": list(names),
            "cursor": cursor,
            "batch": self._next_batch(context),
            "version": context.pool.version,
        }

    def _next_batch(self, context: StageContext) -> list[JSON]:
        if self._batches is None:
            self._batches = EpochBatches(
                self._train_ids, self._config.minibatch, lambda epoch: context.derive_random("epoch", epoch)
            )
        return list(self._batches.batch(self._rewrites))

    def _rewrite(self, chosen: Mapping[str, JSON], context: StageContext) -> Emit:
        (parent,) = (context.pool[name] for name in cast("list[str]", chosen["parents"]))
        components, batch = (tuple(cast("list[str]", chosen[name])) for name in ("components", "batch"))
        selected = Selected(parent, components, batch)
        return Emit(selected, to="generate", version=cast(int, chosen["version"]), derives=(parent.id,))

    # Merges

    def _find_merge(self, context: StageContext) -> Merge | None:
        done = frozenset(self._merged_before)
        return find_merge(self._archive.confirmed, context.pool.__getitem__, done, context.random)

    def _choose_merge(self, merge: Merge, context: StageContext) -> dict[str, JSON]:
        ids = stratified_ids(merge.first, merge.second, self._config.merge_sample, context.random)
        return {
            "parents": [merge.first.id, merge.second.id],
            "ancestor": merge.ancestor.id,
            "looked_for_merge": True,
            "batch": list(ids),
            "version": context.pool.version,
        }

    def _merged(self, chosen: Mapping[str, JSON], context: StageContext) -> Emit:
        first, second = (context.pool[name] for name in cast("list[str]", chosen["parents"]))
        context.spend(Cost(proposals=1))
        artifact = join(first, second, context.pool[str(chosen["ancestor"])])
        candidate = context.propose(artifact, parents=[first, second], operator="merge")
        ids = tuple(cast("list[str]", chosen["batch"]))
        better = max((first, second), key=lambda parent: sum(parent.scores[name] for name in ids))
        return Emit(
            Proposed(candidate, ids, tuple(better.scores[name] for name in ids), split="val"),
            to="screen",
            version=cast(int, chosen["version"]),
            derives=candidate.parents,
        )
