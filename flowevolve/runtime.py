"""What both executors share: flows, the work of one item, contexts, commits and triggers.

This is the only place that creates and settles items, so the counts add up: every item that enters a queue ends
consumed, discarded with a reason, or is still held when the run stops.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Literal

import anyio
from anyio.abc import TaskGroup

from flowevolve.algorithm import Algorithm
from flowevolve.budget import Cost, Ledger
from flowevolve.concurrency import Pulse
from flowevolve.context import StageContext, UpdateContext
from flowevolve.counts import Level
from flowevolve.errors import EngineError, FlowevolveError
from flowevolve.events import EventLog
from flowevolve.flows import Flows
from flowevolve.item import Item, Stale, Ticket, carried, gathered
from flowevolve.llm.calls import CallScope
from flowevolve.llm.client import LLMClient
from flowevolve.llm.types import JSON, ChatReply, EmbedReply, LLMError, Message
from flowevolve.policies.staleness import Staleness, StalenessPolicy
from flowevolve.policies.stopping import Progress, StoppingPolicy
from flowevolve.pool import DEFAULT_POOL, Candidate, Change, Move, Pool, Update, describe_change
from flowevolve.stage import Discard, Emit, Exhausted, Graph, NotYet, Stage, Trigger
from flowevolve.tally import Tally
from flowevolve.turns import Turns

Outcome = Literal["consumed", "discarded"]
OUT_OF_WORK = "exhausted"
NOTHING_TO_DO: tuple[Outcome, str] = ("consumed", "nothing to do yet")
Send = Callable[[str, Item[object]], Awaitable[None]]
"""Hands an item to the stage of this name, waiting where its queue is full."""


class Runtime:
    """The state of one run that stages act on through their contexts."""

    def __init__(
        self,
        algorithm: Algorithm,
        *,
        llm: LLMClient,
        ledger: Ledger,
        events: EventLog,
        staleness: StalenessPolicy,
        stopping: Sequence[StoppingPolicy] = (),
        target_score: float | None = None,
        seed: int = 0,
    ) -> None:
        self.algorithm = algorithm
        self.graph: Graph = algorithm.graph()
        self.pool = Pool(algorithm.pools)
        self.ledger = ledger
        self.flows = Flows(ledger)
        self.turns = Turns()
        self.seed = seed
        self.changed = Pulse()
        self.stop_reason: str | None = None
        self.hurry = False
        self.failure: FlowevolveError | None = None
        self.tally = Tally([stage.name for stage in self.graph.stages])
        self.open_calls = Level(events.elapsed)
        self.best_score: float | None = None
        self.abort: Callable[[], None] = lambda: None
        """Ends all work at once; set by the engine."""
        self._llm = llm
        self._events = events
        self._staleness = staleness
        self._stopping = stopping
        self._target_score = target_score
        self._proposed_by: dict[str, list[Candidate]] = {}
        self._ending: dict[str, str] = {}
        self.items_in_work = 0
        self._proposals_at_gain = 0

    @property
    def call_limit(self) -> int:
        return self._llm.call_limit

    # Flows and items

    def open_flow(self, stage: str, ticket: Ticket, estimate: Cost, *, phase: bool = False) -> Item[Ticket]:
        """Start a flow with a ticket for ``stage``; the caller hands it to an executor. ``phase``: init or finish."""
        version, now = self.pool.version, self._events.elapsed()
        item = self.flows.open(stage, ticket, estimate, version=version, now=now, phase=phase)
        self.log("flow.open", {"flow": item.flow, "stage": stage, "version": version, "trigger": ticket.trigger})
        return item

    @property
    def admitting(self) -> bool:
        """Whether flows may be opened; an algorithm out of work still gets those that its open flows set off."""
        if self.stop_reason == OUT_OF_WORK:
            return not self.hurry and (self.turns.ready or bool(self.flows))
        return self.stop_reason is None

    def fire(self, trigger: Trigger, flow: int | None = None) -> None:
        """A trigger goes off, by a commit of this flow or by time."""
        ordinary = flow is not None and not self.flows.is_triggered(flow)
        if self.turns.fire(trigger, by_ordinary_flow=ordinary):
            self.log("trigger.fired", {"trigger": trigger.name, "version": self.pool.version})
            self.changed.fire()

    async def work(self, stage: Stage, items: Sequence[Item[object]], worker: int, send: Send) -> None:
        """Run a stage on items taken together and hand everything it emits to ``send``.

        Cancelled, it leaves the items unsettled: they stay live.
        """
        item = items[0] if stage.gather == 1 else gathered(items)
        self.items_in_work += len(items)
        began = self._events.elapsed()
        try:
            async with anyio.create_task_group() as tasks:
                outcome, reason = await self._run_stage(stage, item, self.context(stage, item.id, worker, tasks), send)
                tasks.cancel_scope.cancel()
        finally:
            self.items_in_work -= len(items)
            self.tally.worked(stage.name, self._events.elapsed() - began)
        for taken in items:
            self.settle(stage.name, taken, outcome, reason)

    async def _run_stage(
        self, stage: Stage, item: Item[object], context: StageContext, send: Send
    ) -> tuple[Outcome, str]:
        emitted = 0
        changes = self.turns.changes
        try:
            async with aclosing(stage.run(item, context)) as emissions:
                async for emit in emissions:
                    await send(*self._emission(stage, item, emit, emitted))
                    emitted += 1
        except Discard as discard:
            return "discarded", discard.reason
        except Exhausted:
            self.turns.out_of_work = True
            self.stop(OUT_OF_WORK)
        except NotYet:
            return self._not_yet(stage, item, changes)
        except LLMError as error:
            return "discarded", f"llm: {error}"
        except EngineError:
            raise
        except FlowevolveError as error:
            self.fail(error)
            return "discarded", f"failed: {error}"
        return "consumed", ""

    def _not_yet(self, stage: Stage, item: Item[object], changes: int) -> tuple[Outcome, str]:
        ticket = item.payload
        if not isinstance(ticket, Ticket):
            raise EngineError(f"stage {stage.name!r} raised NotYet for an item that is under way; raise Discard")
        if ticket.trigger is None:
            self.turns.hold(changes)
        return NOTHING_TO_DO

    def context(self, stage: Stage, item_id: str, worker: int, tasks: TaskGroup) -> StageContext:
        # In steps of two, so that a stage's less urgent calls have a place between it and the stage before.
        priority = 2 * (len(self.graph.stages) - self.graph.positions.get(stage.name, 0))
        kind = UpdateContext if stage.commits else StageContext
        return kind(self, tasks, stage.name, item_id, worker, priority)

    def _emission(self, stage: Stage, item: Item[object], emit: Emit, index: int) -> tuple[str, Item[object]]:
        target = emit.to if emit.to is not None else next(iter(stage.to), "")
        if target not in self.graph.positions:
            raise EngineError(f"stage {stage.name!r} emitted to {target!r}, which the graph does not have")
        repaired = stage.name == self.graph.repair
        stale = item.expect(Stale).item if repaired else item
        child: Item[object] = Item(
            f"{item.id}.{index}",
            item.flow,
            emit.payload,
            stale.version if emit.version is None else emit.version,
            stale.derives if emit.derives is None else emit.derives,
            self._events.elapsed(),
            stale.repairs + repaired,
        )
        self.flows.enter(target, child)
        self.tally.staleness.repaired += repaired
        self.tally.sent(stage.name)
        self.log("item.sent", {"item": child.id, "stage": target, "version": child.version})
        return target, child

    def mark_taken(self, stage: Stage, item: Item[object]) -> int:
        """Note that an item was taken at a stage; returns its version gap."""
        gap = self.pool.version - item.version
        self.tally.stages[stage.name].items_in += 1
        self.tally.stages[stage.name].gaps += gap
        self.log("item.taken", {"item": item.id, "stage": stage.name, "gap": gap})
        return gap

    def take(self, stage: Stage, item: Item[object]) -> Item[object] | None:
        """Look at an item as it is taken: the item itself to work on, or None if it went no further.

        An item that needs repair comes back with a `Stale` payload: send it to the graph's repair stage.
        """
        gap = self.mark_taken(stage, item)
        about = (candidate.id for candidate in carried(item))
        revoked = self.pool.descends_from_revoked((*item.derives, *about))
        if (gap == 0 and not revoked) or stage.name == self.graph.repair or isinstance(item.payload, Ticket):
            return item
        if self.flows.of_phase(item):
            return item  # the algorithm wants all that it asked for here
        seen = self.tally.staleness
        seen.seen += 1
        seen.max_gap = max(seen.max_gap, gap)
        if stage.commits and not revoked and self._released(item):
            return item  # the verdict on a candidate that is in the pool already is never too late
        repairable = (
            stage.repair_to is not None
            and self.graph.repair is not None
            and all(candidate.parents for candidate in carried(item))  # else there is no edit to judge
        )
        decision = self._staleness.decide(Staleness(stage.name, gap, revoked, repairable, item, self.pool))
        if decision == "continue":
            return item
        if decision == "discard":
            seen.discarded += 1
            self.settle(stage.name, item, "discarded", "stale")
            return None
        if stage.repair_to is None:
            raise EngineError(
                f"staleness policy {type(self._staleness).__name__} wants to repair at {stage.name!r}, which can't"
            )
        stale = Stale(item, stage.repair_to)
        sent = replace(item, id=f"{item.id}.r", payload=stale, created=self._events.elapsed())
        self.flows.enter(self.graph.repair or "", sent)
        self.log("item.sent", {"item": sent.id, "stage": self.graph.repair, "version": sent.version})
        self.settle(stage.name, item, "consumed", "sent to repair")
        return sent

    def _released(self, item: Item[object]) -> bool:
        return any(self.pool.status(candidate.id) == "speculative" for candidate in carried(item))

    def settle(self, stage: str, item: Item[object], outcome: Outcome, reason: str) -> None:
        """An item's end. The flow ends with its last item."""
        self.tally.settled(stage, reason, discarded=outcome == "discarded")
        flow_ended = self.flows.leave(item)
        proposed = self._proposed_by.pop(item.id, [])
        self._end_candidates([*carried(item), *proposed], item, reason if outcome == "discarded" else None)
        self.log("item.done", {"item": item.id, "stage": stage, "outcome": outcome, "reason": reason})
        if flow_ended:
            self.log("flow.close", {"flow": item.flow})
            if (outcome, reason) != NOTHING_TO_DO:
                self.turns.change()
            self._check_stopping()
        self.changed.fire()

    def _end_candidates(self, candidates: Sequence[Candidate], item: Item[object], discarded: str | None) -> None:
        """Once an item about it was discarded, a candidate ends with the last item about it that is live."""
        for candidate in candidates:
            if discarded is not None:
                self._ending.setdefault(candidate.id, discarded)
            if candidate.id in self._ending and not self.flows.carries(candidate.id):
                self._end(candidate, item, self._ending.pop(candidate.id))

    def _end(self, candidate: Candidate, item: Item[object], reason: str) -> None:
        """Reject a candidate, or revoke it where it was released already."""
        status = self.pool.status(candidate.id)
        if status == "proposed":
            self.reject(candidate, item.id, reason)
        elif status == "speculative":
            pool = self.pool.pool_of(candidate.id) or DEFAULT_POOL
            self.commit([Move(candidate.id, "revoked", pool=pool)], item.id)

    # Stopping

    def stop(self, reason: str, *, hurry: bool = False) -> None:
        """Admit nothing more; what is open goes on, to its end or with ``hurry`` for the engine's drain time."""
        self.hurry = self.hurry or hurry
        if self.stop_reason is None:
            self.stop_reason = reason
            self.log("run.stopping", {"reason": reason})
        self.changed.fire()

    def fail(self, error: FlowevolveError) -> None:
        """Stop because of an error no item can get past."""
        if self.failure is None:
            self.failure = error
            self.log("run.failed", {"error": str(error)})
        self.stop("failed")
        self.abort()

    def _check_stopping(self) -> None:
        if self.stop_reason is not None:
            return
        if self._target_score is not None and self.best_score is not None and self.best_score >= self._target_score:
            self.stop("target_score")
            return
        spent = self.ledger.spent
        without_gain = spent.proposals - self._proposals_at_gain
        progress = Progress(self._events.elapsed(), spent, self.pool.version, without_gain, self.best_score)
        for policy in self._stopping:
            reason = policy.reason(progress)
            if reason is not None:
                self.stop(reason)
                return

    # What contexts ask for

    async def chat(
        self,
        role: str,
        messages: Sequence[Message],
        scope: CallScope,
        *,
        max_tokens: int | None,
        temperature: float | None,
    ) -> ChatReply:
        with self.open_calls.one_more():
            reply = await self._llm.chat(role, messages, scope=scope, max_tokens=max_tokens, temperature=temperature)
        self.charge(scope.stage, scope.item, Cost(tokens=reply.paid.total_tokens, dollars=reply.dollars or 0.0))
        return reply

    async def embed(self, role: str, texts: Sequence[str], scope: CallScope) -> EmbedReply:
        with self.open_calls.one_more():
            reply = await self._llm.embed(role, texts, scope=scope)
        self.charge(scope.stage, scope.item, Cost(tokens=reply.usage.total_tokens, dollars=reply.dollars or 0.0))
        return reply

    def charge(self, stage: str, item_id: str, cost: Cost) -> None:
        self.ledger.charge(_flow_of(item_id), cost)
        self.tally.spent(stage, cost)

    def save(self, stage: str, rollouts: int) -> None:
        self.tally.saved(stage, rollouts)

    def candidate_id(self, item_id: str) -> str:
        """Short and unique: the item's path without the trailing first branches, numbered when it is taken."""
        base = item_id.replace(".r", "")
        while base.endswith(".0"):
            base = base[:-2]
        name, number = f"c{base}", 2
        while name in self.pool:
            name, number = f"c{base}-{number}", number + 1
        return name

    def propose(self, candidate: Candidate, item_id: str) -> None:
        self.pool.register(candidate)
        self._proposed_by.setdefault(item_id, []).append(candidate)
        self.log(
            "candidate.proposed",
            {
                "candidate": candidate.id,
                "item": item_id,
                "operator": candidate.operator,
                "parents": list(candidate.parents),
                "born": candidate.born,
                "artifact": candidate.artifact.id,
                "kind_of_artifact": candidate.artifact.kind,
                "components": dict(candidate.artifact),
                "attributes": dict(candidate.attributes),
            },
        )

    def reject(self, candidate: Candidate, item_id: str, reason: str) -> None:
        self.pool.reject(candidate.id)
        self.log("candidate.rejected", {"candidate": candidate.id, "item": item_id, "reason": reason})

    def commit(self, changes: Sequence[Change], item_id: str) -> Update:
        update = self.pool.commit(changes, cause=item_id, time=self._events.elapsed())
        for archive in self.algorithm.archives:
            archive.apply(update)
        before = self.best_score
        best = self.algorithm.best()
        self.best_score = best.mean_score if best is not None else None
        improved = self.best_score is not None and (before is None or self.best_score > before)
        self.tally.committed(changes)
        if improved:
            self._proposals_at_gain = self.ledger.spent.proposals
        self.log(
            "pool.commit",
            {
                "version": update.version,
                "item": item_id,
                "changes": [describe_change(change) for change in changes],
                "best": best.id if best is not None else None,
                "best_score": self.best_score,
            },
        )
        for trigger in self.graph.triggers:
            if trigger.fires(update, improved):
                self.fire(trigger, _flow_of(item_id))
        self.turns.change()
        self._check_stopping()
        return update

    def log(self, kind: str, data: Mapping[str, JSON]) -> None:
        self._events.emit(kind, data)


def _flow_of(item_id: str) -> int:
    return int(item_id.partition("/")[0].partition(".")[0])
