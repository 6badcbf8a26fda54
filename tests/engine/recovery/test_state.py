"""The state of an interrupted run, from a log that was written by hand."""

from __future__ import annotations

from typing import Literal

from bench.simtest.record import Memory, as_kept
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost
from flowevolve.core.event_body import EventBody
from flowevolve.core.event_kinds import (
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
    RunStarted,
    TriggerFired,
)
from flowevolve.core.events import Event
from flowevolve.core.graph import Stage
from flowevolve.core.item import INJECTION
from flowevolve.core.item_ids import ItemId
from flowevolve.core.pool import Candidate
from flowevolve.engine.recovery.recovery import recover
from flowevolve.engine.recovery.state import OpenFlow, RecoveredState
from tests.support.small_runs import Small, consume, no_work
from tests.support.triggers import EveryCommits

STUCK = EveryCommits("stuck", "write", 100)


def recovered(*bodies: EventBody) -> RecoveredState:
    stages = Stage("write", consume, ("update",)), Stage("group", consume, ("update",), gather=2)
    algorithm = Small(no_work, *stages, triggers=(STUCK,), repair="write")
    events = [
        as_kept(Event.of(seq, float(seq), body, "a plan" if isinstance(body, ItemSent) else None))
        for seq, body in enumerate((RunStarted("small"), *bodies))
    ]
    return recover(algorithm, algorithm.graph(), Memory(tuple(events)))


def opened(flow: int, stage: str = "entry", *, trigger: str | None = None, phase: bool = False) -> FlowOpened:
    return FlowOpened(flow, stage, 3, trigger, flow, phase)


def taken(item: str, stage: str = "entry", judged: Literal["continue", "discard", "repair"] | None = None) -> ItemTaken:
    return ItemTaken(ItemId(item), stage, 0, judged)


def sent(item: str, stage: str, *, source: str = "entry") -> ItemSent:
    return ItemSent(ItemId(item), source, stage, "None", 4, ("c0",), 1)


def done(item: str, stage: str = "entry", *, outcome: Outcome = "consumed", tokens: int = 0) -> ItemDone:
    return ItemDone(ItemId(item), stage, outcome, "why", 0.0, Cost(tokens=tokens))


def proposed(name: str, item: str) -> CandidateProposed:
    return CandidateProposed.of(Candidate(name, Artifact({"text": name})), ItemId(item))


def names(items: object) -> list[tuple[str, str]]:
    assert isinstance(items, list | tuple)
    return [(stage, item.id) for stage, item, *_ in items]


def test_what_waited_waits_and_what_was_under_way_is_begun_again() -> None:
    state = recovered(
        opened(0), opened(1), taken("0"), sent("0.0", "write"), sent("0.1", "write"), taken("0.0", "write", "continue")
    )  # fmt: skip
    assert names(state.waiting) == [("entry", "1"), ("write", "0.1")]
    assert [(stage, [item.id for item in batch]) for stage, batch in state.under_way] == [
        ("entry", ["0"]),
        ("write", ["0.0"]),
    ]
    assert state.opened == 2
    assert state.ordinals == {None: 2}
    (child,) = (item for _, item in state.items if item.id == "0.0")
    assert (child.flow, child.version, child.derives, child.repairs, child.created) == (0, 4, ("c0",), 1, 4.0)
    work = state.interrupted_work[ItemId("0")]
    assert (work.children, [each.item for each in work.sent]) == (2, ["0.0", "0.1"])


def test_items_that_were_gathered_stay_together_and_end_together() -> None:
    begin = [opened(0), opened(1), taken("0"), taken("1"), sent("0.0", "group"), sent("1.0", "group")]
    together = ItemsGathered("group", (ItemId("0.0"), ItemId("1.0")))
    gathered = [*begin, taken("0.0", "group"), taken("1.0", "group"), together]
    state = recovered(*gathered)
    assert [[item.id for item in batch] for stage, batch in state.under_way if stage == "group"] == [["0.0", "1.0"]]
    state = recovered(*gathered, done("0.0", "group", outcome="discarded"))
    assert names(state.over) == [("group", "1.0")]
    assert state.over[0][2:] == ("discarded", "why")
    assert not [batch for stage, batch in state.under_way if stage == "group"]


def test_what_was_spent_is_known_and_what_ended_flows_took() -> None:
    state = recovered(
        *(opened(flow) for flow in (0, 1, 2)), taken("0"), done("0", tokens=5), FlowClosed(0),
        taken("1"), sent("1.0", "write"), done("1", tokens=7), taken("2"), done("2", tokens=9),
    )  # fmt: skip
    assert state.spent == Cost(tokens=21)
    assert state.flows[1] == OpenFlow(
        "entry", phase=False, trigger=None, estimate=state.flows[1].estimate, spent=Cost(tokens=7)
    )
    assert state.empty == [2], "its last item had ended, and the log was cut off before it said that the flow had"
    assert list(state.ended) == [Cost(tokens=5), Cost(tokens=9)]


def test_flows_of_phases_and_from_outside_say_nothing_of_ordinary_ones() -> None:
    state = recovered(
        opened(0, "init", phase=True), done("0", "init", tokens=5), PhaseEnded("init", Cost(tokens=2)), FlowClosed(0),
        opened(1, INJECTION, trigger=INJECTION), done("1", INJECTION, tokens=3), FlowClosed(1),
        opened(2, "write", trigger="stuck"), done("2", "write", tokens=4), FlowClosed(2),
    )  # fmt: skip
    assert list(state.ended) == [Cost(tokens=4)]
    assert state.spent == Cost(tokens=14)
    assert state.ordinals == {INJECTION: 1, "stuck": 1}
    assert (state.phases["init"].done, state.phases["init"].ended) == (True, True)


def test_a_trigger_waits_until_its_flow_is_opened() -> None:
    assert list(recovered(TriggerFired("stuck", 4)).fired) == [STUCK]
    assert list(recovered(TriggerFired("stuck", 4), opened(0, "write", trigger="stuck")).fired) == []
    assert list(recovered(TriggerFired("stuck", 4), opened(0)).fired) == [STUCK]


def test_candidates_that_are_to_end_do_so_once() -> None:
    begun = [opened(0), taken("0"), proposed("c0", "0"), CandidateEnding("c0", "stale")]
    assert recovered(*begun).ending == {"c0": "stale"}
    state = recovered(*begun, CandidateRejected("c0", ItemId("0"), "stale"))
    assert state.ending == {}
    assert state.pool.pool.status("c0") == "rejected"
    assert [each.id for each in state.interrupted_work[ItemId("0")].proposals] == ["c0"]


def test_an_item_that_was_on_its_way_to_repair_is_there() -> None:
    state = recovered(
        opened(0), taken("0"), sent("0.0", "write"), taken("0.0", "write", "repair"), sent("0.0.r", "write")
    )
    assert names(state.over) == [("write", "0.0")]
    assert state.over[0][2] == "consumed"
    assert ("write", "0.0.r") in names(state.waiting)


def test_a_finish_that_began_when_init_was_cut_off_begins_anew() -> None:
    init, finish = opened(0, "init", phase=True), opened(1, "finish", phase=True)
    state = recovered(init, finish)
    assert list(state.phases) == ["init"]
    assert [(stage, item.id, outcome) for stage, item, outcome, _ in state.over] == [("finish", "1", "consumed")]
    ended = recovered(init, done("0", "init"), PhaseEnded("init", Cost()), FlowClosed(0), finish)
    assert list(ended.phases) == ["init", "finish"]
    assert ended.over == []


def test_the_work_of_a_phase_is_known_as_interrupted() -> None:
    state = recovered(opened(0, "init", phase=True), proposed("c0", "0"))
    assert [each.id for each in state.interrupted_work[ItemId("0")].proposals] == ["c0"]
    fit = recovered(opened(0, "init", phase=True), proposed("c0", "0"), done("0", "init"), proposed("c1", "0"))
    assert [each.id for each in fit.interrupted_work[ItemId("0")].proposals] == ["c1"], "that of fit alone"
    assert not recovered(opened(0, "init", phase=True), done("0", "init"), PhaseEnded("init", Cost())).interrupted_work


def test_how_many_workers_the_policy_had_given() -> None:
    given = AllocationChanged("write", 1, 3, "why"), AllocationChanged("write", 1, 4, "why")
    assert recovered(*given).workers == {"write": 4}
