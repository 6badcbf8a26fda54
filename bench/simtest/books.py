"""What must be true at every event of a run, checked by accounting that shares no code with the engine's.

The books of a run are kept from its events and calls alone, so that after a kill they can be opened again from what was
kept. Whatever is wrong is added to ``faults``: the name of the rule that was broken, and what broke it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from bench.simtest.bounds import Bounds
from bench.simtest.item_books import Live, StageBooks
from bench.simtest.pool_books import PoolBooks
from bench.simtest.record import Fact
from bench.simtest.rules import Fault, Rule
from bench.simtest.spending_books import SpendingBooks
from bench.simtest.worker_books import WorkerBooks
from flowevolve.core.acts import Act, Approve, Comment, RaiseBudget, Veto
from flowevolve.core.calls import CallRecord
from flowevolve.core.event_body import EventBody
from flowevolve.core.event_kinds import (
    AllocationChanged,
    BudgetRefused,
    CandidateProposed,
    CandidateRejected,
    FlowClosed,
    FlowLimitChanged,
    FlowOpened,
    ItemDone,
    ItemHeld,
    ItemSent,
    ItemsGathered,
    ItemTaken,
    PhaseEnded,
    PoolCommitted,
    RunPaused,
    RunResumed,
    RunSteered,
    RunStopped,
    RunStopping,
    RunUnpaused,
    WidthChanged,
)
from flowevolve.core.item_ids import ItemId, flow_of, parent_and_number, ticket_id
from flowevolve.core.server_event_kinds import AdmissionChanged


@dataclass
class Books:
    """The totals over the first facts of a run. ``bounds`` is None while the facts are only read."""

    faults: list[Fault] = field(default_factory=list)
    bounds: Bounds | None = None
    seq: int = -1
    time: float = 0.0
    pool: PoolBooks = field(init=False)
    live: dict[ItemId, Live] = field(default_factory=dict)
    flows: dict[int, str] = field(default_factory=dict)
    """The open flows, each with its kind: ``phase``, ``inject``, ``trigger`` or ``ordinary``."""
    opened: int = 0
    ordinals: Counter[str | None] = field(default_factory=Counter)
    closing: int | None = None
    """The flow that has just lost its last item."""
    spending: SpendingBooks = field(init=False)
    phases: Counter[str] = field(default_factory=Counter)
    stages: dict[str, StageBooks] = field(default_factory=dict)
    held: int = 0
    stopping: str | None = None
    said: list[str] = field(default_factory=list)
    """The reasons to stop that the run has reported."""
    raised: dict[str, float] = field(default_factory=dict)
    """Limits of the budget that somebody has raised, those in time in seconds."""
    vetoes: dict[str, bool] = field(default_factory=dict)
    """For each candidate, whether it is to be vetoed."""
    comments: int = 0
    paused: bool = False
    paused_items: bool = False
    flow_limit: int | None = None
    width: int | None = None
    workers: WorkerBooks = field(init=False)
    call_limit: int | None = None
    surplus_calls: int = 0
    """How many of the calls under way were begun, or were given their place, before the limit was lowered."""
    ended: bool = False
    resuming: bool = False
    """Whether the run is putting in order what a kill has left."""
    judged: dict[ItemId, tuple[int, str]] = field(default_factory=dict)
    """For each item, the gap that the staleness policy was last told, and its decision."""

    def __post_init__(self) -> None:
        self.pool = PoolBooks(self.fault)
        self.spending = SpendingBooks(self.fault)
        self.workers = WorkerBooks(self.fault)

    def open_with(self, bounds: Bounds) -> None:
        """Go on in a process with these bounds."""
        self.bounds = bounds = replace(bounds, limits=self._raised(bounds.limits))
        self.spending.limits = bounds.limits
        self.workers.open_with(bounds)
        self.width = bounds.width
        self.call_limit, self.surplus_calls = None, 0
        self.stopping, self.said, self.held, self.ended = None, [], 0, False
        self.closed = False
        """Whether the process was killed. What it still does before it is gone is no longer checked."""
        self.paused = self.paused_items = False
        for item in self.live.values():
            item.again = item.state == "taken"

    def take(self, fact: Fact) -> None:
        if isinstance(fact, CallRecord):
            self.spending.call(fact)
            return
        if fact.seq != self.seq + 1:
            self.fault("order", f"event {fact.seq} follows on event {self.seq}")
        if fact.time < self.time:
            self.fault("order", f"event {fact.seq} is at {fact.time}, before {self.time}")
        self.seq, self.time = fact.seq, max(self.time, fact.time)
        if self.closing is not None:
            if not isinstance(fact.body, FlowClosed) and not self.resuming and not isinstance(fact.body, RunResumed):
                self.fault("flows", f"flow {self.closing} had no item left at event {fact.seq} and was not closed")
            self.closing = None
        self._event(fact.body)

    def _event(self, body: EventBody) -> None:
        match body:
            case RunResumed():
                self._resumed(body)
            case RunStopping(reason=reason):
                self.stopping = self.stopping or reason
                self.said.append(reason)
                self.paused = self.paused_items = False
            case RunStopped():
                self._stopped(body)
            case RunPaused(items=items) if self.stopping is None:
                self.paused, self.paused_items = True, items
            case RunUnpaused():
                self.paused = self.paused_items = False
            case RunSteered(act=act, refused=None):
                self._steered(act)
            case WidthChanged(width=width):
                self.width = width
            case FlowLimitChanged(flows=flows):
                self.flow_limit = flows
            case AdmissionChanged(limit=limit, in_flight=in_flight):
                self.call_limit, self.surplus_calls = limit, max(0, in_flight - limit)
            case BudgetRefused():
                self.spending.refused.append(body)
            case AllocationChanged():
                self.workers.change(body)
            case PhaseEnded():
                self._phase_over(body)
            case CandidateProposed() | CandidateRejected() | PoolCommitted():
                self.pool.take(body)
            case _:
                self._item_event(body)

    def _item_event(self, body: EventBody) -> None:
        match body:
            case FlowOpened():
                self._flow_opened(body)
            case FlowClosed():
                self._flow_closed(body)
            case ItemSent():
                self._sent(body)
            case ItemTaken():
                self._take(body)
            case ItemsGathered():
                self._gathered(body)
            case ItemDone():
                self._done(body)
            case ItemHeld():
                self._hold(body)
            case _:
                """Other events change nothing here."""

    def used(self) -> tuple[float, ...]:
        """How much of each limit was used; of a limit in time, how many tenths."""
        limits = {} if self.bounds is None else self.bounds.limits
        return tuple(
            10 * self.time // limit if name == "seconds" else self.spending.amount(name)
            for name, limit in limits.items()
        )

    def fault(self, rule: Rule, what: str) -> None:
        self.faults.append(Fault(rule, what))

    # The run

    def _raised(self, limits: Mapping[str, float]) -> Mapping[str, float]:
        return {name: max(limit, self.raised.get(name, limit)) for name, limit in limits.items()}

    def _steered(self, act: Act) -> None:
        match act:
            case RaiseBudget(limits=limits):
                self.raised.update(limits)
                if self.bounds is not None:
                    self.bounds = replace(self.bounds, limits=self._raised(self.bounds.limits))
                    self.spending.limits = self.bounds.limits
                if self.stopping in limits:  # the run goes on
                    self.stopping = None
            case Veto(candidate=name):
                self.vetoes[name] = True
            case Approve(candidate=name) if name in self.vetoes and self.pool.keeps(name):
                self.vetoes[name] = False
            case Comment():
                self.comments += 1
            case _:
                """Other acts have no effect after a resume."""

    def _resumed(self, body: RunResumed) -> None:
        self.resuming = True
        found = (body.version, body.flows, body.items)
        inhabited = {each.flow for each in self.live.values()}
        if found != (self.pool.version, len(inhabited), len(self.live)):
            self.fault(
                "items",
                f"resumed at version {found[0]} with {found[1]} flows and {found[2]} items, instead of "
                f"{self.pool.version}, {len(inhabited)} and {len(self.live)}",
            )
        injected = sum(
            each.ticket and self.flows[each.flow] == "inject" and each.children for each in self.live.values()
        )
        if body.proposals != self.spending.spent.proposals + injected:
            self.fault(
                "counters", f"resumed with {body.proposals} proposals, instead of {self.spending.spent.proposals}"
            )
        if body.accepted != self.pool.accepted:
            self.fault("counters", f"resumed with {body.accepted} accepted, instead of {self.pool.accepted}")

    def _stopped(self, body: RunStopped) -> None:
        self.ended = True
        if body.held != self.held or self.held != len(self.live):
            self.fault("items", f"at the end {body.held} are held, {self.held} were told of, {len(self.live)} are left")

    def _phase_over(self, body: PhaseEnded) -> None:
        self.phases[body.phase] += 1
        if body.phase == "init" and self.phases["init"] > 1:
            self.fault("items", "init ended twice")
        self.spending.charge(body.cost)

    # Flows and items

    def _flow_opened(self, body: FlowOpened) -> None:
        self.resuming = False
        kind = "phase" if body.phase else "inject" if body.trigger == "inject" else "trigger"
        kind = "ordinary" if kind == "trigger" and body.trigger is None else kind
        if body.flow != self.opened:
            self.fault("flows", f"flow {body.flow} was opened after flow {self.opened - 1}")
        if body.version != self.pool.version:
            self.fault("versions", f"flow {body.flow} was opened at version {body.version}, not {self.pool.version}")
        if kind != "phase":
            if body.ordinal != self.ordinals[body.trigger]:
                self.fault("flows", f"flow {body.flow} is number {body.ordinal} of {body.trigger}")
            self.ordinals[body.trigger] += 1
        if kind in ("ordinary", "trigger"):
            self._may_open(body.flow, kind)
        self.opened = self.pool.flows = body.flow + 1
        self.flows[body.flow] = kind
        state: Literal["waiting", "taken"] = "taken" if kind in ("phase", "inject") else "waiting"
        self.live[ticket_id(body.flow)] = Live(body.stage, body.flow, body.version, (), state=state, ticket=True)

    def _may_open(self, flow: int, kind: str) -> None:
        if self.bounds is None:
            return
        limit = self.width if self.bounds.lockstep else self.flow_limit
        if limit is None or len(self.flows) >= limit:
            self.fault("flow limit", f"flow {flow} was opened beside {len(self.flows)} others, of {limit}")
        if self.paused:
            self.fault("pause", f"flow {flow} was opened in a pause")
        if self.stopping is not None and (self.stopping != "exhausted" or kind == "ordinary"):
            self.fault("flows", f"flow {flow} was opened after the run was to stop ({self.stopping})")

    def _flow_closed(self, body: FlowClosed) -> None:
        if body.flow not in self.flows:
            self.fault("flows", f"flow {body.flow} was closed and was not open")
        if any(each.flow == body.flow for each in self.live.values()):
            self.fault("flows", f"flow {body.flow} was closed with live items")
        self.flows.pop(body.flow, None)

    def _sent(self, body: ItemSent) -> None:
        flow = flow_of(body.item)
        parent, number = parent_and_number(body.item)
        origin = self.live.get(parent)
        if body.item in self.live or flow not in self.flows:
            self.fault("items", f"item {body.item} is there already, or of no open flow")
        if origin is None:
            self.fault("items", f"item {body.item} was made of {parent}, which is not live")
        elif number is None:
            if origin.state != "repair":
                self.fault("gaps", f"item {parent} was sent to repair, though it was judged {origin.state!r}")
        else:
            if number != origin.children:
                self.fault("items", f"item {body.item} follows on {origin.children} others of {parent}")
            origin.children += 1
        if body.version > self.pool.version:
            self.fault("versions", f"item {body.item} is of version {body.version}, after {self.pool.version}")
        unknown = [name for name in body.derives if name not in self.pool.statuses]
        if unknown:
            self.fault("items", f"item {body.item} derives from {unknown}, which nobody proposed")
        self.live[body.item] = Live(body.stage, flow, body.version, body.derives, body.repairs)

    def _take(self, body: ItemTaken) -> None:
        item = self.live.get(body.item)
        if item is None or item.stage != body.stage or item.state != "waiting":
            self.fault("items", f"{body.stage} took item {body.item}, which is {item}")
            return
        self.resuming = False
        self._check_judgement(item, body)
        item.state = "taken" if body.judged is None or body.judged == "continue" else body.judged
        if self.paused_items and self.bounds is not None and not self.bounds.lockstep:
            self.fault("pause", f"{body.stage} took item {body.item} in a pause")
        if body.gap < 0:
            self.fault("gaps", f"item {body.item} has missed {body.gap} changes")
        if item.ticket and body.gap != self.pool.version - item.version:
            self.fault("gaps", f"ticket {body.item} has missed {body.gap}, of {self.pool.version} - {item.version}")
        stage = self._stage(body.stage)
        stage.taken += 1
        stage.gaps += body.gap
        self._check_workers(body.stage)

    def _check_judgement(self, item: Live, body: ItemTaken) -> None:
        """Check that the event agrees with what the staleness policy decided, and that it was asked where necessary."""
        decided = self.judged.pop(body.item, None)
        if self.bounds is None or self.bounds.lockstep:
            return
        stage = self.bounds.graph.stage(body.stage)
        if decided is not None:
            if decided != (body.gap, body.judged):
                self.fault("gaps", f"item {body.item} has {body.gap} and {body.judged}, and was judged {decided}")
        elif body.judged is not None:
            if body.judged != "continue" or not stage.commits:
                self.fault("gaps", f"nobody was asked of item {body.item}, which is judged {body.judged}")
        elif self._must_be_judged(item) and (body.gap or self.pool.descends_from_revoked(item.derives)):
            self.fault("gaps", f"nobody was asked of item {body.item} at {body.stage}, with a gap of {body.gap}")

    def _must_be_judged(self, item: Live) -> bool:
        """Whether an item that has missed something can be stale."""
        at_repair = self.bounds is not None and item.stage == self.bounds.graph.repair
        return not item.ticket and not at_repair and self.flows[item.flow] in ("ordinary", "trigger")

    def _check_workers(self, stage: str) -> None:
        busy = sum(each.stage == stage and each.state == "taken" and not each.again for each in self.live.values())
        self.workers.check(stage, busy)

    def _gathered(self, body: ItemsGathered) -> None:
        for name in body.items:
            item = self.live.get(name)
            if item is None or item.stage != body.stage or item.state != "taken":
                self.fault("items", f"{body.stage} gathered item {name}, which is {item}")
        if self.bounds is not None and len(body.items) > self.bounds.graph.stage(body.stage).gather:
            self.fault("items", f"{body.stage} gathered {len(body.items)} items")

    def _done(self, body: ItemDone) -> None:
        item = self.live.pop(body.item, None)
        if item is None or (item.stage != body.stage and not item.ticket):
            self.fault("items", f"item {body.item} ended at {body.stage} and is {item}")
            return
        if item.state == "waiting" and not self.resuming:
            self.fault("items", f"item {body.item} ended at {body.stage} and was never taken")
        expected = {"discard": ("discarded", "stale"), "repair": ("consumed", "sent to repair")}.get(item.state)
        if expected is not None and expected != (body.outcome, body.reason) and not self.resuming:
            self.fault("gaps", f"item {body.item} was judged {item.state} and ended {body.outcome}: {body.reason}")
        if not any(each.flow == item.flow for each in self.live.values()):
            self.closing = item.flow
        self.spending.charge(body.cost)
        if self.bounds is None or body.stage in self.bounds.graph.positions:
            stage = self._stage(body.stage)
            stage.consumed += body.outcome == "consumed"
            stage.discarded += body.outcome == "discarded"
            stage.rollouts += body.cost.rollouts
            stage.tokens += body.cost.tokens

    def _hold(self, body: ItemHeld) -> None:
        self.held += 1
        if body.item not in self.live:
            self.fault("items", f"item {body.item} is held and is not live")
        else:
            self.live[body.item].again = True  # nobody works on it any more

    def _stage(self, name: str) -> StageBooks:
        return self.stages.setdefault(name, StageBooks())
