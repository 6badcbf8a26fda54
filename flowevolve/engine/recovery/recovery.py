"""The state of an interrupted run, rebuilt from its event log.

The events are replayed into a `RecoveredState`: pool and archives, what was spent and counted, the open flows and their
items. Items that were waiting wait again. Work that was under way is begun again, with the effects that it had
(`flowevolve.engine.recovery.interrupted_work`) and the replies that had arrived
(`flowevolve.engine.recovery.recorded_replies`). What had been spent on such work is charged as the work is done again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from flowevolve._util.errors import FROM_ITS_POOL, InputError
from flowevolve.core.algorithm import Algorithm, Stateful
from flowevolve.core.calls import CallRecord, RoleReplies
from flowevolve.core.event_body import OwnEvent
from flowevolve.core.event_kinds import (
    AlgorithmState,
    AllocationChanged,
    CandidateEnding,
    CandidateProposed,
    CandidateRejected,
    FlowClosed,
    FlowOpened,
    ItemDone,
    ItemSent,
    ItemsGathered,
    ItemTaken,
    Outcome,
    PhaseEnded,
    PoolCommitted,
    RunSteered,
    StageEvent,
    TriggerFired,
)
from flowevolve.core.events import Event, not_followed
from flowevolve.core.graph import Graph
from flowevolve.core.item import INJECTION, SENT_TO_REPAIR, Item, Ticket
from flowevolve.core.item_ids import ItemId, flow_of, parent_and_number, ticket_id
from flowevolve.core.model import LLMError
from flowevolve.engine.contract import estimate_of
from flowevolve.engine.counters import RunCounters
from flowevolve.engine.fruitless import FruitlessCheck
from flowevolve.engine.pool_and_archives import PoolAndArchives
from flowevolve.engine.recovery.interrupted_work import InterruptedWork
from flowevolve.engine.recovery.recorded_replies import AnsweredCall, RecordedReplies
from flowevolve.engine.recovery.state import OpenFlow, Phase, RecoveredState
from flowevolve.llm.client.accounting import Spending

FIT = "fit"
"""Used as the stage's name for the work of ``fit``, whose item is the ticket of init."""
NOT_KEPT = "its payload could not be kept in the journal"


class History(Protocol):
    """What is kept about an interrupted run."""

    @property
    def last(self) -> Event:
        """The last event."""

    @property
    def begun(self) -> bool:
        """Whether init had ended."""

    def events(self) -> Iterator[Event]:
        """All events, oldest first."""

    def close(self) -> None: ...
    def facts(self) -> Iterable[Event | CallRecord]:
        """Events and calls in the order in which they happened; the calls may have no texts."""

    def payload(self, name: str) -> object:
        """The payload of an item that was live, or the attachment of an event of its work (`Event.attached_to`).

        Raises:
            KeyError: if it could not be kept.
        """

    def spent(self) -> Iterable[Spending]:
        """What the run's calls cost."""

    def replies_by_role(self) -> Mapping[str, RoleReplies]:
        """Counts of the replies to the run's calls, by role."""

    def calls(self, interrupted_work: Collection[tuple[str, str]]) -> Iterable[AnsweredCall]:
        """The answered calls of this work (pairs of stage and item); for each, in the order of the answers."""


@dataclass(slots=True)
class _Live:
    stage: str
    item: Item[object]
    """Without its payload, unless that is a ticket."""
    taken: bool = False
    batch: tuple[ItemId, ...] = ()
    """The items that were gathered together with this one, including itself."""
    over: tuple[Outcome, str] | None = None
    """How it ended, if the run was cut off before the log could say so."""


def recover(algorithm: Algorithm, graph: Graph, history: History) -> RecoveredState:
    """Rebuild the state of the run with this history. The algorithm, its archives and its triggers receive all events.

    Raises:
        InputError: if the history does not fit this algorithm.
    """
    replay = _LogReplay(algorithm, graph)
    for event in history.events():
        try:
            replay.take(event)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{not_followed(event)} ({event.kind}): {type(error).__name__}: {error}; it was written by another "
                f"version of flowevolve or of the algorithm. To go on, {FROM_ITS_POOL}"
            ) from error
    return replay.finished(history)


class _LogReplay:
    """Replays a log, event by event."""

    def __init__(self, algorithm: Algorithm, graph: Graph) -> None:
        self._algorithm = algorithm
        self._graph = graph
        self._state = RecoveredState(PoolAndArchives(algorithm), RunCounters(graph), FruitlessCheck(graph))
        self._live: dict[ItemId, _Live] = {}
        self._fired: dict[str, None] = {}
        self._injected: dict[ItemId, CandidateProposed] = {}
        """Candidates from outside that have not been handed to a stage yet, by the item of their injection."""

    def take(self, event: Event) -> None:
        match event.body:
            case FlowOpened() as opened:
                self._flow_opened(opened, event.time)
            case FlowClosed(flow=number):
                self._flow_ended(self._state.flows.pop(number))
            case ItemSent() as sent:
                self._sent(sent, event.time)
            case ItemTaken(
                item=name, judged=None | "continue"
            ):  # the effects of other decisions have events of their own
                self._live[name].taken = True
                self._state.interrupted_work[name] = InterruptedWork(comments=len(self._state.acts.comments))
            case RunSteered() as steered:
                self._state.acts.take(steered, self._state.pool.pool)
            case ItemsGathered(items=batch):
                for name in batch:
                    self._live[name].batch = batch
            case ItemDone() as done:
                self._done(done)
            case CandidateProposed() as proposed:
                self._proposed(proposed)
            case CandidateRejected(candidate=candidate):
                self._state.pool.pool.reject(candidate)
                self._state.ending.pop(candidate, None)
            case CandidateEnding(candidate=candidate, reason=reason):
                self._state.ending[candidate] = reason
            case PoolCommitted() as commit:
                self._committed(commit, event.time)
            case TriggerFired(trigger=trigger):
                self._fired[trigger] = None
            case AllocationChanged(stage=stage, workers=workers):
                self._state.workers[stage] = workers
            case AlgorithmState(state=state):
                self._state.algorithm_state = state
            case PhaseEnded(phase=phase, cost=cost):
                self._state.phases[phase] = replace(self._state.phases[phase], ended=True)
                self._state.interrupted_work.pop(self._state.phases[phase].ticket.id, None)
                self._state.spent += cost
            case StageEvent() | OwnEvent() as body if body.item in self._state.interrupted_work:
                self._state.interrupted_work[body.item].events.setdefault((event.kind, body.key), deque()).append(event)
        self._state.counters.take(event)
        self._state.fruitless.take(event)
        self._algorithm.replay_event(event)

    def _flow_opened(self, opened: FlowOpened, time: float) -> None:
        flow = OpenFlow(opened.stage, opened.phase, opened.trigger)
        self._state.flows[opened.flow] = flow
        self._state.opened = opened.flow + 1
        ticket = Ticket(opened.trigger, opened.ordinal)
        item = Item(ticket_id(opened.flow), opened.flow, ticket, opened.version, (), time)
        self._live[item.id] = _Live(flow.stage, item, taken=flow.phase)
        if flow.ageless:
            self._state.interrupted_work[item.id] = InterruptedWork()
        if flow.phase:
            self._state.phases[flow.stage] = Phase(item, done=False, ended=False)
        else:
            self._state.ordinals[flow.trigger] += 1
            self._fired.pop(flow.trigger or "", None)

    def _flow_ended(self, flow: OpenFlow) -> None:
        if not flow.ageless:
            self._state.ended.append(flow.spent)

    def _sent(self, sent: ItemSent, time: float) -> None:
        item = Item(sent.item, flow_of(sent.item), None, sent.version, sent.derives, time, sent.repairs)
        self._live[sent.item] = _Live(sent.stage, item)
        parent, number = parent_and_number(sent.item)
        if number is None:
            self._live[parent].over = SENT_TO_REPAIR
        elif parent in self._state.interrupted_work:
            if (proposal := self._injected.pop(parent, None)) is not None:
                self._state.acts.arrived(proposal)
            work = self._state.interrupted_work[parent]
            work.sent.append(sent)
            work.children = number + 1

    def _done(self, done: ItemDone) -> None:
        live = self._live.pop(done.item)
        flow = self._state.flows[live.item.flow]
        if flow.phase and done.item == ticket_id(live.item.flow):
            self._state.phases[live.stage] = replace(self._state.phases[live.stage], done=True)
            self._state.interrupted_work[done.item] = InterruptedWork()  # the work of fit, which is on the same ticket
        else:
            self._state.interrupted_work.pop(done.item, None)
        for each in live.batch:
            if each in self._live:  # they end together
                self._live[each].over = done.outcome, done.reason
        self._state.spent += done.cost
        flow.spent += done.cost

    def _proposed(self, proposed: CandidateProposed) -> None:
        candidate = proposed.proposal()
        self._state.pool.pool.register(candidate)
        if proposed.item in self._live and self._live[proposed.item].stage == INJECTION:
            self._injected[proposed.item] = proposed
        if proposed.item in self._state.interrupted_work:
            self._state.interrupted_work[proposed.item].proposals.append(candidate)

    def _committed(self, commit: PoolCommitted, time: float) -> None:
        update = self._state.pool.commit(commit.read_changes(self._state.pool.pool.__getitem__), commit.item, time)
        proposals = self._state.spent.proposals if commit.proposals is None else commit.proposals
        improved = self._state.pool.note_best(commit.best_score, proposals)
        for trigger in self._graph.triggers:
            trigger.fires(update, improved)  # so that triggers which count commits count this one
        if commit.item in self._state.interrupted_work and commit.stage is not None:
            self._state.interrupted_work[commit.item].commits.append(update)

    def finished(self, history: History) -> RecoveredState:
        """The state at the end of the log."""
        state = self._state
        if state.algorithm_state is not None and isinstance(self._algorithm, Stateful):
            self._algorithm.restore(state.algorithm_state)
        inhabited = {live.item.flow for live in self._live.values()}
        state.empty = [number for number in state.flows if number not in inhabited]
        for number in state.empty:
            self._flow_ended(state.flows.pop(number))
        for flow in state.flows.values():
            if not flow.phase:
                flow.estimate = estimate_of(self._algorithm, flow.trigger)
        state.over = [*self._revive(history), *self._give_up_finish()]
        state.waiting, state.under_way = self._sort_out({item.id for _, item, _, _ in state.over})
        for work in state.interrupted_work.values():
            work.reattach(history.payload)
        interrupted_work = [
            (self._live[name].stage if name in self._live else FIT, name) for name in state.interrupted_work
        ]
        # A failed call of fit ended the run. Whoever resumes the run has removed the cause, so the call is made again.
        state.recorded_replies = RecordedReplies(
            call
            for call in history.calls(interrupted_work)
            if call.stage != FIT or not isinstance(call.reply, LLMError)
        )
        state.fired = [trigger for trigger in self._graph.triggers if trigger.name in self._fired]
        state.items = [(live.stage, live.item) for live in self._live.values()]
        return state

    def _revive(self, history: History) -> Iterator[tuple[str, Item[object], Outcome, str]]:
        """Give the items their payloads; yields the items to end."""
        for live in self._live.values():
            if live.stage == INJECTION:
                live.over = self._end_injection(live.item.id)
            if not isinstance(live.item.payload, Ticket):
                try:
                    live.item = replace(live.item, payload=history.payload(live.item.id))
                except KeyError:
                    live.over = live.over or ("discarded", NOT_KEPT)
            if live.over is not None:
                yield (live.stage, live.item, *live.over)

    def _end_injection(self, item: ItemId) -> tuple[Outcome, str]:
        """How the work of injecting a candidate ends. It can't be done again: only the caller had the artifact."""
        if self._state.interrupted_work[item].sent:
            del self._state.interrupted_work[item]
            self._state.injected.append(item)
            return "consumed", ""
        return "discarded", "cut off as it was injected"

    def _give_up_finish(self) -> list[tuple[str, Item[object], Outcome, str]]:
        """End the ticket of a finish that began because init was cut off. Finish begins anew when its time comes."""
        init, finish = self._state.phases.get("init"), self._state.phases.get("finish")
        if finish is None or finish.done or (init is not None and init.ended):
            return []
        del self._state.phases["finish"]
        return [("finish", finish.ticket, "consumed", "to be begun anew")]

    def _sort_out(
        self, ended: Collection[str]
    ) -> tuple[list[tuple[str, Item[object]]], list[tuple[str, list[Item[object]]]]]:
        """The items that wait for stages, and those that were being worked on, in batches."""
        waiting: list[tuple[str, Item[object]]] = []
        under_way: list[tuple[str, list[Item[object]]]] = []
        seen: set[str] = set(ended)
        for name, live in self._live.items():
            if name in seen or live.stage not in self._graph.positions:
                continue
            if not live.taken:
                waiting.append((live.stage, live.item))
                continue
            batch = [each for each in (live.batch or (name,)) if each in self._live and each not in ended]
            seen.update(batch)
            under_way.append((live.stage, [self._live[each].item for each in batch]))
        return waiting, under_way
