"""What the stream and lockstep share: flows, the work on one item, staleness and triggers.

This is the only place that creates and ends items, so the counts add up: every item that enters a queue is consumed,
discarded with a reason, or still held when the run stops.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import NoReturn

import anyio
from anyio.lowlevel import cancel_shielded_checkpoint, checkpoint_if_cancelled

from flowevolve._util.errors import EngineError, FlowevolveError, InputError
from flowevolve._util.logger import WorkedOn
from flowevolve._util.tasks import Pulse, stray_cancellation_is_an_error
from flowevolve.core.algorithm import Algorithm
from flowevolve.core.budget import Cost, Dimension, OverBudgetError
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.discard_reasons import NO_REPLY
from flowevolve.core.event_body import EventBody
from flowevolve.core.event_kinds import (
    BudgetRefused,
    FlowClosed,
    FlowOpened,
    ItemDone,
    ItemSent,
    ItemsGathered,
    ItemTaken,
    Outcome,
    PhaseEnded,
    TriggerFired,
)
from flowevolve.core.events import Event, EventLog
from flowevolve.core.graph import AnyStage, CommittingStage, Discard, Emit, Exhausted, Graph, NotYet, Trigger
from flowevolve.core.item import INJECTION, SENT_TO_REPAIR, Item, Stale, Ticket, carried, gathered
from flowevolve.core.item_ids import ItemId, child_id, flow_of, repair_id
from flowevolve.core.model import LLMError
from flowevolve.core.policies import Decision, Departure, FlowFacts, StalenessPolicy, StoppingPolicy
from flowevolve.core.pool import Pool, Update
from flowevolve.core.stop_reasons import EXHAUSTED
from flowevolve.core.templates import Templates
from flowevolve.engine.contract import (
    INIT,
    check_emission,
    check_generator,
    estimate_of,
    init_error,
    stage_error,
    target_of,
)
from flowevolve.engine.counters import RunCounters
from flowevolve.engine.endings import CandidateEndings
from flowevolve.engine.flow_facts import flow_facts, waiting
from flowevolve.engine.flows import Flows
from flowevolve.engine.fruitless import FruitlessCheck
from flowevolve.engine.ledger import Ledger
from flowevolve.engine.pause import Paused
from flowevolve.engine.recovery.state import RecoveredState
from flowevolve.engine.services import EngineServices, Settled
from flowevolve.engine.staleness_check import StalenessCheck
from flowevolve.engine.stopping import Stopping
from flowevolve.engine.tickets import TicketQueue
from flowevolve.llm.client.client import LLMClient

NOTHING_TO_DO: tuple[Outcome, str] = ("consumed", "nothing to do yet")
Send = Callable[[str, Item[object]], Awaitable[None]]
"""Hands an item to the stage of this name, and waits while that stage's queue is full."""


class Dispatcher:
    """The state of one run that stages act on through their contexts."""

    def __init__(
        self,
        algorithm: Algorithm,
        *,
        llm: LLMClient,
        ledger: Ledger,
        events: EventLog,
        staleness: StalenessPolicy,
        settled: Settled,
        templates: Templates,
        stopping: Sequence[StoppingPolicy],
        most_in_vain: int,
        seed: int,
        abort: Callable[[], None],
    ) -> None:
        """``abort`` cancels the run at once. The run fails if its first ``most_in_vain`` flows are all in vain."""
        self.graph: Graph = algorithm.graph()
        self.ledger = ledger
        self.flows = Flows(ledger)
        self.tickets = TicketQueue()
        self.changed = Pulse()
        self.pause = Paused()
        self.counters = RunCounters(self.graph)
        events.subscribe(self._take)
        self.services = EngineServices(
            algorithm,
            llm=llm,
            ledger=ledger,
            events=events,
            seed=seed,
            templates=templates,
            settled=settled,
            on_commit=self._committed,
        )
        self.items_in_work = 0
        self._algorithm = algorithm
        self._llm = llm
        self._events = events
        self._staleness = StalenessCheck(algorithm, self.graph, self.flows, self.services, staleness)
        self.endings = CandidateEndings(self.flows, self.services, self.log)
        self.stopping = Stopping(
            ledger=ledger,
            events=events,
            services=self.services,
            tickets=self.tickets,
            counters=lambda: self.counters,
            fruitless=FruitlessCheck(self.graph),
            pause=self.pause,
            changed=self.changed,
            policies=stopping,
            most_in_vain=most_in_vain,
            abort=abort,
        )

    @property
    def pool(self) -> Pool:
        return self.services.pool

    @property
    def call_limit(self) -> int:
        return self._llm.call_limit

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self._events.elapsed()

    def load(self, state: RecoveredState) -> None:
        """Take over the state of an interrupted run. This is called once, before any other work."""
        self.counters, self.stopping.fruitless = state.counters, state.fruitless
        self.endings.load(state.ending)
        self.tickets.restore(state.ordinals, state.fired)
        self.ledger.restore(state.spent, state.ended)
        self.ledger.raise_limits(state.acts.limits)
        self.flows.number_from(state.opened)
        for number, flow in state.flows.items():
            triggered = flow.trigger is not None
            self.flows.restore(
                number, ageless=flow.ageless, triggered=triggered, estimate=flow.estimate, spent=flow.spent
            )
        for stage, item in state.items:
            self.flows.enter(stage, item)
        self.services.load(state)

    def _take(self, event: Event) -> None:
        self.counters.take(event)  # in a resumed run, these were the interrupted one's
        self.stopping.fruitless.take(event)
        if not isinstance(self.stopping.failure, EngineError):  # else the algorithm is not asked any more
            self._algorithm.apply_event(event)

    def log(self, body: EventBody, attachment: object | None = None) -> None:
        self._events.emit(body, attachment)

    async def fail(self, error: FlowevolveError) -> NoReturn:
        """End the whole run, including the work that calls this. Items in work stay live, so they count as held, and
        their work is done again when the run is resumed: by then the cause may be gone.
        """
        self.stopping.fail(error)
        await anyio.sleep_forever()
        raise AssertionError("a run that has failed is cancelled")

    async def fail_by(self, stage: str, item: Item[object], error: Exception) -> NoReturn:
        """End the run because the code of a stage raised ``error``. It is reported as a mistake in that code, unless it
        is a failure that users can do something about.
        """
        if isinstance(error, FlowevolveError) and not isinstance(error, EngineError):
            await self.fail(error)
        await self.fail(stage_error(self._algorithm, stage, item, error))

    # Flows and items

    async def refusal(self, estimate: Cost) -> Dimension | None:
        """The limit that does not allow a flow of this cost to be opened now, or None if all do.

        If the run is being cancelled, the caller is cancelled here. Cancelled work has already released the budget that
        was set aside for it, but will need it again when the run is resumed.
        """
        await checkpoint_if_cancelled()
        return self.ledger.refusal(estimate, self._algorithm.estimate_finish(self.ledger.share_of))

    def open_flow(self, stage: str, ticket: Ticket, estimate: Cost, *, phase: bool = False) -> Item[Ticket]:
        """Start a flow with a ticket for ``stage``, which the caller hands to an executor.

        ``phase`` says whether the flow is that of init or finish.
        """
        version, now = self.pool.version, self._events.elapsed()
        ageless = phase or stage == INJECTION
        item = self.flows.open(stage, ticket, estimate, version=version, now=now, ageless=ageless)
        self.log(FlowOpened(item.flow, stage, version, ticket.trigger, ticket.ordinal, phase))
        return item

    @property
    def may_open_flows(self) -> bool:
        """Whether flows may be opened. An algorithm without ordinary work still gets those that open flows trigger."""
        if self.stopping.reason == EXHAUSTED:
            return not self.stopping.hurry and (self.tickets.ready or bool(self.flows))
        return self.stopping.reason is None

    def batch_size(self, stage: AnyStage) -> int:
        """How many items the stage should be handed together next."""
        if stage.gather_by is None:
            return stage.gather
        return max(1, min(stage.gather, stage.gather_by.next(self.counters.batches[stage.name])))

    def leaves(self, stage: AnyStage, departure: Departure, items: int) -> bool:
        """Whether the ``items`` items (at least one) that wait at a gathering stage leave together now."""
        return departure.leaves(waiting(self.graph, self.flows, self.counters, stage, items))

    def flow_facts(self) -> FlowFacts:
        """The facts on which the bound on open flows is based."""
        estimate, slots = estimate_of(self._algorithm), self._algorithm.slots
        return flow_facts(self.graph, self.counters, self.ledger, estimate, self.call_limit, slots)

    def fire(self, trigger: Trigger, flow: int) -> None:
        """Have a flow opened for a trigger that a commit of this flow has fired."""
        if self.tickets.fire(trigger, by_ordinary_flow=not self.flows.is_triggered(flow)):
            self.log(TriggerFired(trigger.name, self.pool.version))
            self.changed.fire()

    @contextmanager
    def in_work(self, items: int) -> Generator[None]:
        """Count this many items as being worked on as long as the ``with`` lasts."""
        self.items_in_work += items
        try:
            yield
        finally:
            self.items_in_work -= items

    async def work(self, stage: AnyStage, items: Sequence[Item[object]], send: Send) -> None:
        """Run a stage on items that were taken together, and hand everything it emits to ``send``.

        If this is cancelled, the items do not end, and stay live.
        """
        item = gathered(items) if stage.gathers else items[0]
        if (len(items) > 1 or stage.gather_by or stage.departs) and item.id not in self.services.interrupted_work:
            self.log(ItemsGathered(stage.name, tuple(each.id for each in items)))
        began = self._events.elapsed()
        with WorkedOn(stage.name, item.id), self.in_work(len(items)):
            outcome, reason = await self._run_stage(stage, item, send)
            await cancel_shielded_checkpoint()  # even a stage that never waits lets others have their turn
        seconds = self._events.elapsed() - began
        for taken in items:
            self.end_item(stage.name, taken, outcome, reason, seconds if taken is items[0] else 0.0)

    async def _run_stage(self, stage: AnyStage, item: Item[object], send: Send) -> tuple[Outcome, str]:
        work = self.services.interrupted_work.get(item.id)
        children = 0 if work is None else work.children
        changes = self.tickets.changes
        try:
            async with stray_cancellation_is_an_error(), aclosing(self._begin(stage, item)) as emissions:
                async for emit in emissions:
                    check_emission(emit, self.pool)
                    target = target_of(emit, stage, self.graph)
                    if work is None or not work.handed_on(target, emit.payload):
                        await send(target, self.emitted(stage.name, target, item, emit, children))
                        children += 1
        except (Discard, NotYet, Exhausted, LLMError) as raised:
            return await self._given_up(stage, item, raised, changes)
        except OverBudgetError as error:
            await self._over_budget(error)
            return "discarded", str(error)
        except Exception as error:  # noqa: BLE001 - a mistake of whoever wrote the stage, in whatever form
            await self.fail_by(stage.name, item, error)
        return "consumed", ""

    async def _given_up(
        self, stage: AnyStage, item: Item[object], raised: Discard | NotYet | Exhausted | LLMError, changes: int
    ) -> tuple[Outcome, str]:
        """What becomes of an item whose stage ended early. A ticket that led to nothing may be opened again later."""
        if stage.name == INIT and not isinstance(raised, Exhausted):
            await self.fail_by(INIT, item, init_error(self._algorithm, raised))
        if isinstance(raised, Discard):
            return "discarded", raised.reason
        if isinstance(raised, LLMError):
            return "discarded", f"{NO_REPLY} {raised}"
        ticket = item.payload if isinstance(item.payload, Ticket) else None
        if ticket is None or (isinstance(raised, NotYet) and stage.name not in self.graph.positions):
            only = "only the entry stage may raise it; to give up one item, raise Discard"
            await self.fail_by(stage.name, item, EngineError(f"{type(raised).__name__} was raised: {only}"))
        if isinstance(raised, Exhausted):
            self.tickets.out_of_work = True
            self.stopping.stop(EXHAUSTED)
            return "consumed", ""
        if ticket.trigger is None:
            self.tickets.hold(changes)
        return NOTHING_TO_DO

    async def _over_budget(self, error: OverBudgetError) -> None:
        """Begin nothing more: it would only spend the rest of the budget on smaller work that leads nowhere."""
        if error.alone:
            needs = f"what the run begins with; give at least {error.needed:.12g}"
            await self.fail(InputError(f"budget.{error.dimension} is too small to evaluate {needs}"))
        else:
            self.log(BudgetRefused(error.dimension, error.needed))
            self.stopping.stop(error.dimension)

    def _begin(self, stage: AnyStage, item: Item[object]) -> AsyncGenerator[Emit]:
        """Begin a stage's work on an item, with the context that it needs."""
        # Priorities go in steps of two, so that less urgent calls still come before those of the stage before.
        priority = 2 * (len(self.graph.stages) - self.graph.positions.get(stage.name, 0))
        if isinstance(stage, CommittingStage):
            work = stage.run(item, UpdateContext(self.services, stage.name, item.id, priority))
        else:
            work = stage.run(item, StageContext(self.services, stage.name, item.id, priority))
        check_generator(work)
        return work

    def emitted(self, source: str, target: str, item: Item[object], emit: Emit, index: int) -> Item[object]:
        """Make an item of what the work on ``item`` emitted as its ``index``th emission; the caller sends it on."""
        repaired = source == self.graph.repair
        stale = item.expect(Stale).item if repaired else item
        child: Item[object] = Item(
            child_id(item.id, index),
            item.flow,
            emit.payload,
            stale.version if emit.version is None else emit.version,
            stale.derives if emit.derives is None else emit.derives,
            self._events.elapsed(),
            stale.repairs + repaired,
        )
        self._enter(source, target, child)
        return child

    def _enter(self, source: str, target: str, item: Item[object]) -> None:
        self.flows.enter(target, item)
        sent = ItemSent(item.id, source, target, type(item.payload).__name__, item.version, item.derives, item.repairs)
        self.log(sent, item.payload)

    def mark_taken(self, stage: AnyStage, item: Item[object], judged: Decision | None = None) -> None:
        """Note that a stage took an item, and the staleness policy's decision on it, if the policy was asked."""
        if item.id not in self.services.interrupted_work:  # else it was taken before the run was interrupted
            self.services.comments.begin(item.id)
            self.log(ItemTaken(item.id, stage.name, self._staleness.gap(item), judged))

    def take(self, stage: AnyStage, item: Item[object]) -> Item[object] | None:
        """Check an item for staleness when a stage takes it. Returns the item to work on, or None if it was discarded.

        If the item needs repair, an item with a `Stale` payload is returned. The caller sends it to the repair stage.
        """
        decision = self._staleness.decide(stage, item)
        self.mark_taken(stage, item, decision)
        if decision in (None, "continue"):
            return item
        if decision == "discard":
            self.end_item(stage.name, item, "discarded", "stale")
            return None
        assert stage.repair_to is not None
        stale = Stale(item, stage.repair_to)
        sent = replace(item, id=repair_id(item.id), payload=stale, created=self._events.elapsed())
        self._enter(stage.name, self.graph.repair or "", sent)
        self.end_item(stage.name, item, *SENT_TO_REPAIR)
        return sent

    def end_item(self, stage: str, item: Item[object], outcome: Outcome, reason: str, seconds: float = 0.0) -> None:
        """End an item, after ``seconds`` of work on it. The flow ends with its last item."""
        cost, proposals, not_again = self.services.end_work(stage, item.id)
        flow_ended = self.flows.leave(item)
        if outcome == "discarded":
            self.endings.note([*carried(item), *proposals], reason)
        self.endings.note(not_again, "not proposed again")
        self.endings.end([*carried(item), *proposals], item)
        self.log(ItemDone(item.id, stage, outcome, reason, round(seconds, 6), cost))
        if flow_ended:
            self.log(FlowClosed(item.flow))
            if (outcome, reason) != NOTHING_TO_DO:
                self.tickets.change()
            self.stopping.check()
        self.changed.fire()

    def end_phase(self, name: str, ticket: Item[Ticket], stage: str | None = None) -> None:
        """End init or finish. ``stage`` names the last work on its ticket, if that was not the phase's own work."""
        cost, _, not_again = self.services.end_work(stage or name, ticket.id)
        self.endings.note(not_again, "not proposed again")
        self.endings.end(not_again, ticket)
        self.log(PhaseEnded(name, cost))

    def _committed(self, update: Update, improved: bool, item_id: ItemId) -> None:
        for trigger in self.graph.triggers:
            if trigger.fires(update, improved):
                self.fire(trigger, flow_of(item_id))
        self.tickets.change()
        self.stopping.check()
