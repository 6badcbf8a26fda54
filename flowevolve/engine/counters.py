"""What a run counts for its report. The counts are a function of its event log, so a resumed run goes on counting.

The algorithm's own init and finish are not counted at any stage. Two of these numbers also steer the run: the sizes and
durations of batches, and what was spent since items last left a stage together.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import takewhile

from flowevolve._util.json_types import JSON
from flowevolve.core.budget import Cost
from flowevolve.core.discard_reasons import OVERTAKEN, PERFECT, UNCHANGED
from flowevolve.core.event_kinds import (
    BudgetRefused,
    CandidateProposed,
    CandidateRejected,
    CandidateValidated,
    EvaluationStopped,
    FlowLimitChanged,
    ItemDone,
    ItemSent,
    ItemsGathered,
    ItemTaken,
    PoolCommitted,
    ProgramNotNew,
    RepairUnparsable,
    ReplyPartlyRead,
    ReplyUnparsable,
    RolloutsSaved,
    StepEnded,
)
from flowevolve.core.events import Event
from flowevolve.core.graph import Graph
from flowevolve.core.item import Released
from flowevolve.core.item_ids import ItemId, parent_and_number
from flowevolve.core.logged_changes import LoggedAdd, LoggedChange, LoggedMove
from flowevolve.core.policies import PAST, Batch, FlowLimit
from flowevolve.core.pool import DEFAULT_POOL, MIGRATE, SEED

MOST_REASONS = 100
"""For each stage, this many different reasons to discard items are kept in full."""
MEMORY = 0.9
"""The factor by which the weight of earlier edits shrinks with each group that leaves."""
LATEST = 0.3
"""The weight of the latest validation in the share of recent validations that accepted their candidate."""
ALONE = 0.25
"""The weight of an edit that was made while only one flow could be open, so that nothing could have overtaken it."""


@dataclass(slots=True)
class StageCounts:
    """What went through one stage, and what was spent there. ``busy_seconds`` sums over its workers."""

    items_in: int = 0
    items_out: int = 0
    """Items handed on, without those that were sent to repair or released ahead of a result."""
    consumed: int = 0
    discarded: int = 0
    busy_seconds: float = 0.0
    gaps: int = 0
    """The sum of the version gaps of the items taken."""
    rollouts: int = 0
    tokens: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """How many items were discarded for each reason."""

    def discard(self, reason: str) -> None:
        """Count a discarded item. Beyond `MOST_REASONS` reasons, a new one is counted by its part before the colon."""
        kind, colon, _ = reason.partition(":")
        if colon and reason not in self.reasons and len(self.reasons) >= MOST_REASONS:
            reason = f"{kind}: …"
        self.discarded += 1
        self.reasons[reason] += 1

    @property
    def ended(self) -> int:
        """How many items ended here."""
        return self.consumed + self.discarded


@dataclass(slots=True)
class StalenessCounts:
    """``seen`` counts items taken with a version gap or derived from a revoked candidate."""

    seen: int = 0
    discarded: int = 0
    repaired: int = 0
    max_gap: int = 0


@dataclass(slots=True)
class SpeculationCounts:
    """Candidates that entered the pool with only a part of their scores, and what became of them."""

    released: int = 0
    confirmed: int = 0
    revoked: int = 0


@dataclass(slots=True)
class RacingCounts:
    """Evaluations that were stopped before their end.

    ``tokens_saved`` is an upper estimate: the number of unfinished rollouts times the mean tokens of the finished
    rollouts of the same stage. When a request is cancelled, the server may already have written a part of the reply,
    and it does not report those tokens.
    """

    stopped: int = 0
    rollouts_saved: int = 0
    tokens_saved: int = 0


@dataclass(slots=True)
class ReplyCounts:
    """Replies that could be read only in part or not at all, by role and reason, with an example of each reason. A
    reply that was requested again counts each time.
    """

    unreadable: dict[str, Counter[str]] = field(default_factory=dict)
    asked_again: int = 0
    partly_read: dict[str, Counter[str]] = field(default_factory=dict)
    """Counts the parts that were left out."""
    examples: dict[str, str] = field(default_factory=dict)
    not_new: Counter[str] = field(default_factory=Counter)
    """Counts programs that were rejected as too similar to others, by the check that rejected them."""

    def take_unreadable(self, event: ReplyUnparsable) -> None:
        self.unreadable.setdefault(event.role, Counter())[event.reason] += 1
        self.asked_again += event.again
        self.examples.setdefault(event.reason, f"{event.error}: {event.example}" if event.example else event.error)

    def take_partly_read(self, event: ReplyPartlyRead) -> None:
        self.partly_read.setdefault(event.role, Counter()).update(event.reasons)
        for reason, error in zip(event.reasons, event.errors, strict=True):
            self.examples.setdefault(reason, error)

    def to_json(self) -> dict[str, JSON]:
        return {
            "unreadable": {role: dict(counts) for role, counts in self.unreadable.items()},
            "asked_again": self.asked_again,
            "partly_read": {role: dict(counts) for role, counts in self.partly_read.items()},
            "examples": dict(self.examples),
            "not_new": dict(self.not_new),
        }


def accepts(change: LoggedChange) -> bool:
    """Whether a logged change of the pool accepts a candidate that was made in this run.

    A seed was not made in the run, and a copy on another island is no new candidate. Candidates of a pool other than
    the main one, such as evolved prompts, don't count.
    """
    if not isinstance(change, LoggedAdd | LoggedMove) or change.status != "confirmed" or change.pool != DEFAULT_POOL:
        return False
    return isinstance(change, LoggedMove) or change.operator not in (SEED, MIGRATE)


class RunCounters:
    """The counts of one run, for its report."""

    def __init__(self, graph: Graph) -> None:
        self.stages = {stage.name: StageCounts() for stage in graph.stages}
        self.staleness = StalenessCounts()
        self.speculation = SpeculationCounts()
        self.racing = RacingCounts()
        self.replies = ReplyCounts()
        self.accepted = 0
        self.perfect = 0
        """How many minibatches have left nothing to improve since a candidate was last proposed or committed."""
        self.batches: dict[str, deque[Batch]] = {
            stage.name: deque(maxlen=PAST) for stage in graph.stages if stage.gather_by is not None
        }
        """The last batches of each stage that has a policy for the size of its batches, oldest first."""
        self._departed = {stage.name: Cost() for stage in graph.stages if stage.departs is not None}
        """By stage with a departure policy: what the stages before it had spent when items last left it together."""
        self._waited, self._overtaken = 2.0, 0.0
        """How many edits left for validation, and how many were overtaken; recent ones weigh more. The counts begin as
        if there had been two edits, neither of them overtaken.
        """
        self.accepted_share = 1.0
        """The share of recent validations that accepted their candidate. The latest one has the weight `LATEST`."""
        self.refused: BudgetRefused | None = None
        """The last work that did not fit into the budget."""
        self.flow_limit: FlowLimit | None = None
        """How many flows may be open in the stream; None until that is decided."""
        self.steps: deque[Batch] = deque(maxlen=PAST)
        """The last steps of lockstep, oldest first."""
        self._gathered: dict[ItemId, int] = {}
        """The sizes of the batches in work, by the first item of each."""
        self._repair = graph.repair
        self._unread: set[ItemId] = set()
        """Items at the repair stage for which the model's verdict could not be read. They are handed on unchanged."""

    def take(self, event: Event) -> None:
        """An event sink."""
        match event.body:
            case ItemTaken() as taken:
                self._taken(taken)
            case ItemSent() as sent:
                self._sent(sent)
            case RepairUnparsable(item=item):
                self._unread.add(item)
            case ReplyUnparsable() as refused:
                self.replies.take_unreadable(refused)
            case ReplyPartlyRead() as partly:
                self.replies.take_partly_read(partly)
            case ProgramNotNew(by=by):
                self.replies.not_new[by] += 1
            case ItemsGathered(stage=stage, items=items):
                if stage in self.batches:
                    self._gathered[items[0]] = len(items)
                if stage in self._departed:
                    self._count_departed(len(items))
                    self._departed[stage] = self._spent_before(stage)
            case CandidateProposed():
                self.perfect = 0
            case CandidateRejected(reason=reason) if reason == OVERTAKEN:
                self._overtaken += 1
            case CandidateValidated(accepted=accepted):
                self._validated(accepted=accepted)
            case EvaluationStopped():
                self._validated(accepted=False)
            case ItemDone() as done if done.stage in self.stages:
                self._done(done, self.stages[done.stage])
            case BudgetRefused() as refused:
                self.refused = refused
            case FlowLimitChanged(flows=flows, reason=reason):
                self.flow_limit = FlowLimit(flows, reason)
            case StepEnded(flows=flows, seconds=seconds):
                self.steps.append(Batch(flows, seconds))
            case RolloutsSaved() as saved:
                self._saved(saved)
            case PoolCommitted(stage=stage, changes=changes) if stage != "init":  # what a run starts from is no success
                self.perfect = 0
                for change in changes:
                    self._accept(change)
                    self._committed(change)

    @property
    def unchanged(self) -> int:
        """How often the text that was written was the same as before."""
        return sum(counts.reasons[UNCHANGED] for counts in self.stages.values())

    @property
    def overtaken(self) -> float:
        """The share of recent edits that were discarded because another edit had overtaken them."""
        return min(1.0, self._overtaken / self._waited)

    def since_departure(self, stage: str) -> Cost:
        """What the stages before this one have spent since items last left it together."""
        return self._spent_before(stage).less(self._departed[stage])

    def price(self, stage: str) -> Cost:
        """What a stage has spent per item, on average; zero until an item has ended there."""
        counts, ended = self.stages[stage], self.stages[stage].ended
        return Cost(rollouts=counts.rollouts // ended, tokens=counts.tokens // ended) if ended else Cost()

    def _count_departed(self, edits: int) -> None:
        weight = ALONE if self.flow_limit is not None and self.flow_limit.flows == 1 else 1.0
        self._waited = weight * edits + MEMORY**weight * self._waited
        self._overtaken *= MEMORY**weight

    def _validated(self, *, accepted: bool) -> None:
        self.accepted_share += LATEST * (accepted - self.accepted_share)

    def _spent_before(self, stage: str) -> Cost:
        earlier = takewhile(lambda name: name != stage, self.stages)
        counts = [self.stages[name] for name in earlier]
        return Cost(rollouts=sum(each.rollouts for each in counts), tokens=sum(each.tokens for each in counts))

    def _taken(self, taken: ItemTaken) -> None:
        if taken.stage in self.stages:
            counts = self.stages[taken.stage]
            counts.items_in += 1
            counts.gaps += taken.gap
        if taken.judged is not None:
            self.staleness.seen += 1
            self.staleness.max_gap = max(self.staleness.max_gap, taken.gap)
            self.staleness.discarded += taken.judged == "discard"

    def _sent(self, sent: ItemSent) -> None:
        if sent.source == self._repair:
            parent, _ = parent_and_number(sent.item)
            self.staleness.repaired += parent not in self._unread
            self._unread.discard(parent)
        if sent.source in self.stages and sent.stage != self._repair and sent.payload != Released.__name__:
            self.stages[sent.source].items_out += 1

    def _done(self, done: ItemDone, counts: StageCounts) -> None:
        size = self._gathered.pop(done.item, 0)
        if size:
            self.batches[done.stage].append(Batch(size, done.seconds))
        if done.outcome == "discarded":
            counts.discard(done.reason)
            self.perfect += done.reason == PERFECT
        else:
            counts.consumed += 1
        counts.busy_seconds += done.seconds
        counts.rollouts += done.cost.rollouts
        counts.tokens += done.cost.tokens

    def _saved(self, saved: RolloutsSaved) -> None:
        self.racing.stopped += 1
        self.racing.rollouts_saved += saved.rollouts
        counts = self.stages.get(saved.stage)
        if counts is not None and counts.rollouts:
            self.racing.tokens_saved += round(saved.rollouts * counts.tokens / counts.rollouts)

    def _accept(self, change: LoggedChange) -> None:
        if accepts(change):
            self.accepted += 1

    def _committed(self, change: LoggedChange) -> None:
        match change:
            case LoggedAdd(status="speculative"):
                self.speculation.released += 1
            case LoggedMove(status="confirmed"):
                self.speculation.confirmed += 1
            case LoggedMove(status="revoked"):
                self.speculation.revoked += 1
