"""GEPA's entry stage: chooses what the next flow works on, such as a rewrite of one parent or a merge of two."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import ClassVar

from flowevolve.algorithms.gepa.config import GEPAConfig
from flowevolve.algorithms.gepa.merge import Merge, find_merge, join, stratified_ids
from flowevolve.algorithms.gepa.prune import Passage, Pruning, without
from flowevolve.archives.base import CandidateArchive
from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import FlowClosed
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit
from flowevolve.core.item import Item
from flowevolve.core.item_ids import flow_of
from flowevolve.core.pool import SEED, Add, Candidate, Move, Update
from flowevolve.core.record import Record
from flowevolve.policies.batching import EpochBatches
from flowevolve.policies.selection import ComponentSelection, Selection
from flowevolve.stages import Head, Proposed, Remeasuring, Selected


class MergeSchedule:
    """Decides when a merge is due: after a rewrite was confirmed, as long as more merges are left than are under way.

    It is a function of the log. A candidate that is confirmed in the flow of a merge counts as that merge, even if it
    was repaired.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._open: set[int] = set()
        """Flows that merge and have had no candidate confirmed yet."""
        self._operators: dict[str, str] = {}
        self.due = False

    def begin(self, flow: int) -> None:
        """Note that a flow merges."""
        self._open.add(flow)

    def end(self, flow: int) -> None:
        """Note that a flow has ended."""
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
        elif operator != SEED:
            self.due = self._left > len(self._open)


class Cursors:
    """Each candidate's place in the round robin of its components. It is a function of commits and ``gepa.selected``
    events.
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def apply(self, update: Update) -> None:
        """Give each new candidate the place of the parent that has come furthest by then."""
        for candidate in update.added():
            self._places.setdefault(candidate.id, self._inherited(candidate))

    def of(self, candidate: Candidate) -> int:
        """The place of a candidate; if it is not in the pool yet, that of the parent that has come furthest."""
        return self._places.get(candidate.id, self._inherited(candidate))

    def _inherited(self, candidate: Candidate) -> int:
        return max((self._places.get(parent, 0) for parent in candidate.parents), default=0)

    def move(self, candidate_id: str, place: int) -> None:
        self._places[candidate_id] = place


class Plan(Record, kind="gepa.selected"):
    """What a flow works on: usually a rewrite of one parent. With an ``ancestor`` it is a merge of two parents, with
    ``removed`` a parent without these passages, and with ``again`` another measurement of the parent. Candidates are
    given by their ids.
    """

    parents: tuple[str, ...]
    ancestor: str | None
    looked_for_merge: bool
    components: tuple[str, ...] = ()
    cursor: int = 0
    """The parent's place in the round robin of components from now on."""
    batch: tuple[str, ...]
    version: int
    removed: tuple[Passage, ...] = ()
    again: bool = False


@dataclass(eq=False)
class Select:
    """Picks parent, components and minibatch.

    The cursors and the number of rewrites follow from the ``gepa.selected`` events, of which there is one for every
    flow. The number of rewrites is the number of the next minibatch. Only a flow that rewrites draws a minibatch, so
    none is skipped.
    """

    plan_type: ClassVar[type[Plan]] = Plan
    archive: CandidateArchive
    schedule: MergeSchedule
    config: GEPAConfig
    selection: Selection
    components: ComponentSelection
    train_ids: tuple[str, ...]
    head: Head | None = None
    """What edits are merged onto and what a parent may be; None if edits are not merged."""
    pruning: Pruning | None = None
    """Says when to take something out of the best candidate; None: never."""
    remeasuring: Remeasuring | None = None
    """Says when to measure the best candidate again; None: never."""
    cursors: Cursors = field(default_factory=Cursors, init=False)
    _batches: EpochBatches | None = field(default=None, init=False)
    _rewrites: int = field(default=0, init=False)
    _merged_before: set[tuple[str, str, str]] = field(default_factory=set, init=False)

    async def __call__(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        plan = context.decide(self.plan_type, lambda: self._choose(context))
        if plan.again:
            parent = context.pool[plan.parents[0]]
            yield Emit(Proposed(parent, (), ()), to="remeasure", version=plan.version, derives=plan.parents)
        elif plan.removed:
            yield self._pruned(plan, context)
        elif plan.ancestor is None:
            if not context.pool.keeps(plan.parents[0]):  # a group that failed before the run was resumed
                raise Discard("its parent failed")
            parent = context.pool[plan.parents[0]]
            selected = Selected(parent, plan.components, plan.batch)
            yield Emit(selected, to="generate", version=plan.version, derives=plan.parents)
        else:
            yield self._merged(plan, plan.ancestor, context)

    def apply_event(self, event: Event) -> None:
        """Move cursors and counts on, and note what was merged."""
        match event.body:
            case OwnEvent(kind=Plan.kind, data=data, item=item):
                self._note(self.plan_type.from_json(data), flow_of(item))
            case FlowClosed(flow):
                self.schedule.end(flow)
            case _:
                pass

    def _choose(self, context: StageContext) -> Plan:
        best = None if self.remeasuring is None else self.remeasuring.due()
        if best is not None:
            return self.plan_type(
                parents=(best.id,),
                ancestor=None,
                looked_for_merge=False,
                batch=(),
                version=context.pool.version,
                again=True,
            )
        removed = () if self.pruning is None else self.pruning.due()
        if removed:
            return self._choose_pruning(removed, context)
        merge = self._find_merge(context) if self.schedule.due else None
        return self._choose_rewrite(context) if merge is None else self._choose_merge(merge, context)

    def _note(self, plan: Plan, flow: int) -> None:
        if self.pruning is not None:
            self.pruning.begin(flow, plan.removed)
        if self.remeasuring is not None:
            self.remeasuring.begin(flow, again=plan.again)
        if plan.looked_for_merge:
            self.schedule.due = False
        if plan.removed or plan.again:
            return
        if plan.ancestor is not None:
            self.schedule.begin(flow)
            self._merged_before.add((plan.parents[0], plan.parents[1], plan.ancestor))
        else:
            self._rewrites += 1
            self.cursors.move(plan.parents[0], plan.cursor)

    def _choose_pruning(self, removed: tuple[Passage, ...], context: StageContext) -> Plan:
        """The test takes as many validation examples as an edit and its parent are run on together, as the parent's
        scores are known already.
        """
        parent = self.archive.best()
        assert parent is not None, "something is to be taken out of the best candidate, so there is one"
        size = min(2 * self.config.minibatch, len(parent.scores))
        return self.plan_type(
            parents=(parent.id,),
            ancestor=None,
            looked_for_merge=False,
            batch=tuple(context.random.sample(list(parent.scores), size)),
            version=context.pool.version,
            removed=removed,
        )

    def _choose_rewrite(self, context: StageContext) -> Plan:
        parent = self._parent(context)
        names, cursor = self.components.select(list(parent.artifact), self.cursors.of(parent))
        return self.plan_type(
            parents=(parent.id,),
            ancestor=None,
            looked_for_merge=self.schedule.due,
            components=names,
            cursor=cursor,
            batch=self._next_batch(context),
            version=context.pool.version,
        )

    def _parent(self, context: StageContext) -> Candidate:
        """The head with a probability of ``optimism``, else what the policy selects."""
        if self.head is not None and context.random.random() < self.config.optimism:
            return context.pool[self.head.id()]
        return self.selection.select(self.archive, context.random)

    def _next_batch(self, context: StageContext) -> tuple[str, ...]:
        if self._batches is None:
            self._batches = EpochBatches(
                self.train_ids, self.config.minibatch, lambda epoch: context.derive_random("epoch", epoch)
            )
        return self._batches.batch(self._rewrites)

    def _find_merge(self, context: StageContext) -> Merge | None:
        done = frozenset(self._merged_before)
        return find_merge(self.archive.confirmed, context.pool.__getitem__, done, context.random)

    def _choose_merge(self, merge: Merge, context: StageContext) -> Plan:
        ids = stratified_ids(merge.first, merge.second, self.config.merge_sample, context.random)
        return self.plan_type(
            parents=(merge.first.id, merge.second.id),
            ancestor=merge.ancestor.id,
            looked_for_merge=True,
            batch=ids,
            version=context.pool.version,
        )

    def _pruned(self, plan: Plan, context: StageContext) -> Emit:
        parent = context.pool[plan.parents[0]]
        context.begin(Cost(proposals=1))
        candidate = context.propose(without(parent.artifact, plan.removed), parents=[parent], operator="prune")
        baseline = tuple(parent.scores[name] for name in plan.batch)
        proposed = Proposed(candidate, plan.batch, baseline, split="val")
        return Emit(proposed, to="prune", version=plan.version, derives=candidate.parents)

    def _merged(self, plan: Plan, ancestor: str, context: StageContext) -> Emit:
        first, second = (context.pool[name] for name in plan.parents)
        context.begin(Cost(proposals=1))
        artifact = join(first, second, context.pool[ancestor])
        candidate = context.propose(artifact, parents=[first, second], operator="merge")
        better = max((first, second), key=lambda parent: sum(parent.scores[name] for name in plan.batch))
        return Emit(
            Proposed(candidate, plan.batch, tuple(better.scores[name] for name in plan.batch), split="val"),
            to="screen",
            version=plan.version,
            derives=candidate.parents,
        )
