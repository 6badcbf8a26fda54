"""The state of an interrupted run, which the dispatcher and the run's phases take over."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from flowevolve._util.json_types import JSON
from flowevolve.core.budget import Cost
from flowevolve.core.event_kinds import (
    Outcome,
)
from flowevolve.core.graph import Trigger
from flowevolve.core.item import INJECTION, Item, Ticket
from flowevolve.core.item_ids import ItemId
from flowevolve.core.pool import Candidate, Change
from flowevolve.engine.acts_taken import ActsTaken
from flowevolve.engine.counters import RunCounters
from flowevolve.engine.fruitless import FruitlessCheck
from flowevolve.engine.ledger import RECENT_FLOWS
from flowevolve.engine.pool_and_archives import PoolAndArchives
from flowevolve.engine.recovery.interrupted_work import InterruptedWork
from flowevolve.engine.recovery.recorded_replies import RecordedReplies


@dataclass(slots=True)
class OpenFlow:
    """A flow that had not ended. ``phase`` says whether it is that of init or finish."""

    stage: str
    phase: bool
    trigger: str | None
    estimate: Cost = field(default_factory=Cost)
    """How much of the budget is to be reserved for it."""
    spent: Cost = field(default_factory=Cost)

    @property
    def ageless(self) -> bool:
        return self.phase or self.stage == INJECTION


@dataclass(frozen=True, slots=True)
class Phase:
    """The state of init or finish: its ticket, whether its own work is done, and whether everything that followed from
    it is.
    """

    ticket: Item[Ticket]
    done: bool
    ended: bool


@dataclass(slots=True)
class RecoveredState:
    """The state of an interrupted run. The algorithm has already received what it has to know of it."""

    pool: PoolAndArchives
    counters: RunCounters
    fruitless: FruitlessCheck
    spent: Cost = field(default_factory=Cost)
    ended: deque[Cost] = field(default_factory=partial(deque[Cost], maxlen=RECENT_FLOWS))
    """What the most recently ended ordinary flows had spent, oldest first."""
    ending: dict[str, str] = field(default_factory=dict)
    """Candidates that are to end as soon as no live item is about them any more, with the reasons."""
    ordinals: Counter[str | None] = field(default_factory=Counter)
    """How many tickets each trigger had received; under None, how many ordinary tickets there were."""
    fired: Sequence[Trigger] = ()
    """Triggers that were waiting for a flow."""
    algorithm_state: Mapping[str, JSON] | None = None
    opened: int = 0
    """How many flows had been opened."""
    flows: dict[int, OpenFlow] = field(default_factory=dict)
    """The open flows by number."""
    items: Sequence[tuple[str, Item[object]]] = ()
    """The live items with their stages, oldest first."""
    injected: list[ItemId] = field(default_factory=list)
    """Items whose work proposed a candidate from outside that has not been charged yet."""
    interrupted_work: dict[ItemId, InterruptedWork] = field(default_factory=dict)
    """What had already been done in work that is to be done again."""
    recorded_replies: RecordedReplies = field(default_factory=RecordedReplies)
    under_way: Sequence[tuple[str, Sequence[Item[object]]]] = ()
    """Items that were being worked on, alone or as a batch, with their stages."""
    waiting: Sequence[tuple[str, Item[object]]] = ()
    """Waiting items and the stages for which they wait, oldest first."""
    over: Sequence[tuple[str, Item[object], Outcome, str]] = ()
    """Items to end, with their stages, outcomes and reasons: they had ended, or their payload could not be kept."""
    empty: Sequence[int] = ()
    """Flows whose last item had ended, but whose own end was not logged."""
    phases: dict[str, Phase] = field(default_factory=dict)
    """The phases that had begun."""
    acts: ActsTaken = field(default_factory=ActsTaken)
    workers: dict[str, int] = field(default_factory=dict)
    """How many workers the allocation policy had given to each stage."""


@dataclass(frozen=True, slots=True)
class Start:
    """The pool of another run, to start from: its candidates as they were proposed, and its updates, oldest first."""

    candidates: Sequence[Candidate]
    updates: Sequence[Sequence[Change]]
    flows: int
    """How many flows it had opened. Numbering goes on from there, because candidates are named after flows."""
