"""Rebuilding a run that was interrupted from its event log.

The log is folded into a fresh runtime: pool and archives, what was spent and counted, the open flows and their items.
Items that were waiting wait again; work that was under way is begun again, knowing what it had done (`flowevolve.work`)
and with the replies that had come in (`flowevolve.playback`). What was spent on such work counts again as it is redone.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

from flowevolve.algorithm import Algorithm
from flowevolve.budget import Cost
from flowevolve.errors import InputError
from flowevolve.events import Event
from flowevolve.item import INJECTION, Item, Ticket, flow_of
from flowevolve.llm.accounting import Spending
from flowevolve.llm.calls import CallRecord
from flowevolve.llm.types import JSON, LLMError
from flowevolve.playback import Playback, PlayedCall
from flowevolve.pool import Candidate, Change, read_candidate, read_change
from flowevolve.runtime import SENT_TO_REPAIR, Outcome, Runtime
from flowevolve.work import Sent, Work

FIT = "fit"
"""Stands for a stage's name in what fit does; its item is init's ticket."""
NOT_KEPT = "its payload could not be kept in the journal"


class History(Protocol):
    """What is kept of a run that was interrupted."""

    @property
    def last(self) -> Event:
        """The last event."""
        ...

    @property
    def begun(self) -> bool:
        """Whether init was over."""
        ...

    def events(self) -> Iterator[Event]:
        """All events, oldest first."""
        ...

    def close(self) -> None: ...
    def facts(self) -> Iterable[Event | CallRecord]:
        """Events and calls in the order in which they happened; the calls may have no texts."""
        ...

    def payload(self, name: str) -> object:
        """The payload of an item that was live, or what was attached to an event of its work (`Event.attached_to`).

        Raises:
            KeyError: if it could not be kept.
        """
        ...

    def spent(self) -> Iterable[Spending]:
        """What its calls cost."""
        ...

    def calls(self, works: Collection[tuple[str, str]]) -> Iterable[PlayedCall]:
        """The calls that were answered for the work of these stages on these items, in that order."""
        ...


@dataclass(slots=True)
class _Flow:
    stage: str
    phase: bool
    trigger: str | None
    spent: Cost = field(default_factory=Cost)

    @property
    def ageless(self) -> bool:
        return self.phase or self.stage == INJECTION


@dataclass(slots=True)
class _Live:
    stage: str
    item: Item[object]
    """Without its payload, unless that is a ticket."""
    taken: bool = False
    batch: tuple[str, ...] = ()
    """The items it was gathered with, itself among them."""
    over: tuple[Outcome, str] | None = None
    """How it ended, where only that was not written any more."""


@dataclass(frozen=True, slots=True)
class Phase:
    """init or finish: its ticket, whether its own work was done, and whether all that came of it was."""

    ticket: Item[Ticket]
    done: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class Interrupted:
    """What the engine has to know of the run it goes on with."""

    under_way: Sequence[tuple[str, Sequence[Item[object]]]]
    """Items that were being worked on, one or a batch, and the stages where they were."""
    waiting: Sequence[tuple[str, Item[object]]]
    """Items and the stages they wait for, oldest first."""
    over: Sequence[tuple[str, Item[object], Outcome, str]]
    """Items to settle, with their stages, outcomes and reasons: they had ended, or their payload could not be kept."""
    empty: Sequence[int]
    """Flows whose last item had ended, but not they."""
    phases: Mapping[str, Phase]
    """The phases that were begun."""
    workers: Mapping[str, int]
    """Workers that allocation had given to stages."""


@dataclass(frozen=True, slots=True)
class Start:
    """The pool of another run, to start from: its candidates as they were proposed, and its updates, oldest first."""

    candidates: Sequence[Candidate]
    updates: Sequence[Sequence[Change]]
    flows: int
    """How many flows it had opened: ours are numbered from there, as candidates are named after flows."""


def recover(runtime: Runtime, algorithm: Algorithm, history: History) -> Interrupted:
    """Put a fresh runtime where the history ends.

    Raises:
        InputError: if the history is not one of this algorithm.
    """
    fold = _Fold(runtime, algorithm)
    for event in history.events():
        try:
            fold.take(event)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the journal can't be followed at event {event.seq} ({event.kind}): {type(error).__name__}: {error}; "
                "it was written by another version of flowevolve or of the algorithm. Start a new run from its pool: "
                "flowevolve run CONFIG --from DIR"
            ) from error
    return fold.restore(history)


class _Fold:
    def __init__(self, runtime: Runtime, algorithm: Algorithm) -> None:
        self._runtime = runtime
        self._algorithm = algorithm
        self._flows: dict[int, _Flow] = {}
        self._live: dict[str, _Live] = {}
        self._works: dict[str, Work] = {}
        self._ordinals: Counter[str | None] = Counter()
        self._fired: dict[str, None] = {}
        self._workers: dict[str, int] = {}
        self._phases: dict[str, Phase] = {}
        self._state: Mapping[str, JSON] | None = None

    def take(self, event: Event) -> None:
        data = event.data
        match event.kind:
            case "flow.open":
                self._flow_opened(event)
            case "flow.close":
                self._flow_ended(self._flows.pop(cast(int, data["flow"])))
            case "item.sent":
                self._sent(event)
            case "item.taken":
                if data["judged"] in (None, "continue"):  # else what comes of that is in the events that follow
                    self._live[str(data["item"])].taken = True
                    self._works[str(data["item"])] = Work()
            case "items.gathered":
                batch = tuple(cast("list[str]", data["items"]))
                for name in batch:
                    self._live[name].batch = batch
            case "item.done":
                self._done(str(data["item"]), data)
            case "candidate.proposed":
                self._candidate_proposed(data)
            case "candidate.rejected":
                self._runtime.pool.reject(str(data["candidate"]))
                self._runtime.ending.pop(str(data["candidate"]), None)
            case "candidate.ending":
                self._runtime.ending[str(data["candidate"])] = str(data["reason"])
            case "pool.commit":
                self._committed(event)
            case "trigger.fired":
                self._fired[str(data["trigger"])] = None
            case "allocation.changed":
                self._workers[str(data["stage"])] = cast(int, data["workers"])
            case "algorithm.state":
                self._state = cast("dict[str, JSON]", data["state"])
            case "phase.ended":
                phase = str(data["phase"])
                self._phases[phase] = replace(self._phases[phase], ended=True)
                self._works.pop(self._phases[phase].ticket.id, None)
                self._runtime.ledger.spent += Cost.of(data["cost"])
            case kind if "item" in data and "stage" in data and kind != "item.held":
                self._logged(event)
        self._runtime.tally.take(event)
        self._algorithm.replay_event(event)

    def _flow_opened(self, event: Event) -> None:
        data = event.data
        number, trigger = cast(int, data["flow"]), cast("str | None", data["trigger"])
        flow = _Flow(str(data["stage"]), bool(data["phase"]), trigger)
        self._flows[number] = flow
        self._runtime.flows.opened = number + 1
        ticket = Ticket(trigger, cast(int, data["ordinal"]))
        item = Item(str(number), number, ticket, cast(int, data["version"]), (), event.time)
        self._live[item.id] = _Live(flow.stage, item, taken=flow.phase)
        if flow.phase or flow.stage == INJECTION:
            self._works[item.id] = Work()
        if flow.phase:
            self._phases[flow.stage] = Phase(item, done=False, ended=False)
        else:
            self._ordinals[trigger] += 1
            self._fired.pop(trigger or "", None)

    def _flow_ended(self, flow: _Flow) -> None:
        if not flow.ageless:
            self._runtime.ledger.note_ended(flow.spent)

    def _sent(self, event: Event) -> None:
        data = event.data
        name, stage = str(data["item"]), str(data["stage"])
        item: Item[object] = Item(
            name,
            flow_of(name),
            None,
            cast(int, data["version"]),
            tuple(cast("list[str]", data["derives"])),
            event.time,
            cast(int, data["repairs"]),
        )
        self._live[name] = _Live(stage, item)
        parent, _, number = name.rpartition(".")
        if number == "r":
            self._live[parent].over = SENT_TO_REPAIR
        elif parent in self._works:
            work = self._works[parent]
            work.sent.append(Sent(name, stage, str(data["payload"])))
            work.children = int(number) + 1

    def _done(self, name: str, data: Mapping[str, JSON]) -> None:
        cost = Cost.of(data["cost"])
        live = self._live.pop(name)
        flow = self._flows[live.item.flow]
        if flow.phase and name == str(live.item.flow):
            self._phases[live.stage] = replace(self._phases[live.stage], done=True)
            self._works[name] = Work()  # of fit, which follows in its name
        else:
            self._works.pop(name, None)
        for each in live.batch:
            if each in self._live:  # they end together
                self._live[each].over = cast(Outcome, data["outcome"]), str(data["reason"])
        self._runtime.ledger.spent += cost
        flow.spent += cost

    def _candidate_proposed(self, data: Mapping[str, JSON]) -> None:
        candidate = read_candidate(data)
        self._runtime.pool.register(candidate)
        work = self._works.get(str(data["item"]))
        if work is not None:
            work.proposals.append(candidate)

    def _committed(self, event: Event) -> None:
        data, effects = event.data, self._runtime.effects
        described = cast("list[dict[str, JSON]]", data["changes"])
        changes = [read_change(change, effects.pool.__getitem__) for change in described]
        best_score = cast("float | None", data["best_score"])
        update, improved = effects.replay_commit(changes, str(data["item"]), event.time, best_score)
        for trigger in self._runtime.graph.triggers:
            trigger.fires(update, improved)  # for those that count; what came of it is in the log
        work = self._works.get(str(data["item"]))
        if work is not None and data["stage"] is not None:
            work.commits.append(update)

    def _logged(self, event: Event) -> None:
        """An event that a stage wrote of its own."""
        work = self._works.get(str(event.data["item"]))
        if work is not None:
            key = cast("str | None", event.data.get("key"))
            work.events.setdefault((event.kind, key), deque()).append(event)

    def restore(self, history: History) -> Interrupted:
        runtime = self._runtime
        if self._state is not None:
            runtime.effects.restore_state(self._state)
        waiting_triggers = [trigger for trigger in runtime.graph.triggers if trigger.name in self._fired]
        runtime.turns.restore(self._ordinals, waiting_triggers)
        inhabited = {live.item.flow for live in self._live.values()}
        empty = [number for number in self._flows if number not in inhabited]
        for number, flow in self._flows.items():
            if number not in inhabited:
                self._flow_ended(flow)
                continue
            estimate = Cost() if flow.phase else self._algorithm.estimate(flow.trigger)
            runtime.flows.restore(
                number,
                ageless=flow.ageless,
                triggered=flow.trigger is not None,
                estimate=estimate,
                spent=flow.spent,
            )
        over = self._enter(history)
        over += self._give_up_finish()
        ended = {item.id for _, item, _, _ in over}
        waiting, under_way = self._sort_out(ended)
        for name, work in self._works.items():
            work.reattach(history.payload)
            runtime.effects.restore_work(name, work)
        works = [(self._live[name].stage if name in self._live else FIT, name) for name in self._works]
        # A failure that ended fit ended the run: whoever goes on has seen to it, so it is asked again.
        calls = (call for call in history.calls(works) if call.stage != FIT or not isinstance(call.reply, LLMError))
        runtime.effects.playback = Playback(calls)
        return Interrupted(under_way, waiting, over, empty, self._phases, self._workers)

    def _enter(self, history: History) -> list[tuple[str, Item[object], Outcome, str]]:
        """Make the items live again; returns those that have to be settled."""
        over: list[tuple[str, Item[object], Outcome, str]] = []
        for live in self._live.values():
            kept = True
            if not isinstance(live.item.payload, Ticket):
                try:
                    live.item = replace(live.item, payload=history.payload(live.item.id))
                except KeyError:
                    kept = False
            self._runtime.flows.enter(live.stage, live.item)
            if live.stage == INJECTION:
                live.over = self._injected(live.item.id)
            if live.over is not None:
                over.append((live.stage, live.item, *live.over))
            elif not kept:
                over.append((live.stage, live.item, "discarded", NOT_KEPT))
        return over

    def _injected(self, item: str) -> tuple[Outcome, str]:
        """How a candidate from outside ends its own work: it can't be proposed again, as nobody has it any more."""
        if self._works[item].sent:
            del self._works[item]
            self._runtime.effects.charge(INJECTION, item, Cost(proposals=1))  # as it was, though no event says so
            return "consumed", ""
        return "discarded", "cut off as it was injected"

    def _give_up_finish(self) -> list[tuple[str, Item[object], Outcome, str]]:
        """A finish that began before init had ended, as it was cut off, is begun anew when its time comes."""
        init, finish = self._phases.get("init"), self._phases.get("finish")
        if finish is None or finish.done or (init is not None and init.ended):
            return []
        del self._phases["finish"]
        return [("finish", finish.ticket, "consumed", "to be begun anew")]

    def _sort_out(
        self, ended: Collection[str]
    ) -> tuple[list[tuple[str, Item[object]]], list[tuple[str, list[Item[object]]]]]:
        """The items of stages that wait, and those that were being worked on, in the batches they were taken in."""
        waiting: list[tuple[str, Item[object]]] = []
        under_way: list[tuple[str, list[Item[object]]]] = []
        seen: set[str] = set(ended)
        for name, live in self._live.items():
            if name in seen or live.stage not in self._runtime.graph.positions:
                continue
            if not live.taken:
                waiting.append((live.stage, live.item))
                continue
            batch = [each for each in (live.batch or (name,)) if each in self._live and each not in ended]
            seen.update(batch)
            under_way.append((live.stage, [self._live[each].item for each in batch]))
        return waiting, under_way
