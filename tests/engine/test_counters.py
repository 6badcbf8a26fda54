"""What a run counts, event by event."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator

import pytest

from flowevolve.core.budget import Cost
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.discard_reasons import NO_REPLY, OVERTAKEN, UNCHANGED
from flowevolve.core.event_body import EventBody
from flowevolve.core.event_kinds import (
    BudgetRefused,
    CandidateRejected,
    CandidateValidated,
    EvaluationStopped,
    FlowLimitChanged,
    ItemDone,
    ItemSent,
    ItemsGathered,
    ItemTaken,
    Outcome,
    PoolCommitted,
    ProgramNotNew,
    RepairUnparsable,
    ReplyPartlyRead,
    ReplyUnparsable,
    RolloutsSaved,
    StepEnded,
)
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Graph, Stage
from flowevolve.core.item import Item
from flowevolve.core.item_ids import ItemId
from flowevolve.core.logged_changes import LoggedAdd, LoggedChange, LoggedMove, LoggedNote
from flowevolve.core.policies import Batch, FlowLimit
from flowevolve.engine.counters import MOST_REASONS, RunCounters
from flowevolve.policies.departure import Balance

ITEM = ItemId("1.0")


async def idle(item: Item[object], context: StageContext | UpdateContext) -> AsyncGenerator[Emit]:
    for emission in NO_EMISSIONS:
        yield emission


class Ones:
    """A batch size."""

    def next(self, past: object) -> int:
        return 1


GRAPH = Graph(
    (
        Stage("select", idle, ("write",)),
        Stage("write", idle, ("group",)),
        Stage("group", idle, ("update",), gather=8, departs=Balance()),
        Stage("repair", idle, ("write",)),
        Stage("gather", idle, ("update",), gather=4, gather_by=Ones()),
        CommittingStage("update", idle),
    ),
    entry="select",
    repair="repair",
)


def counted(*bodies: EventBody) -> RunCounters:
    counters = RunCounters(GRAPH)
    for number, body in enumerate(bodies):
        counters.take(Event.of(number, 0.0, body))
    return counters


def done(
    stage: str, *, outcome: Outcome = "consumed", reason: str = "", seconds: float = 0.0, cost: Cost | None = None
) -> ItemDone:
    return ItemDone(ITEM, stage, outcome, reason, seconds, cost or Cost())


def sent(item: str, source: str, stage: str, payload: str = "Plan") -> ItemSent:
    return ItemSent(ItemId(item), source, stage, payload, 1, (), 0)


def committed(*changes: LoggedChange, stage: str = "update") -> PoolCommitted:
    return PoolCommitted(1, ITEM, stage, changes, None, None)


def added(status: str = "confirmed", operator: str = "write", pool: str = "main") -> LoggedAdd:
    return LoggedAdd("c1", pool, status, operator, {}, {})  # type: ignore[arg-type]  # any string here is a status


def test_what_goes_through_a_stage() -> None:
    counts = counted(
        ItemTaken(ITEM, "write", 2, None),
        ItemTaken(ITEM, "write", 3, None),
        ItemTaken(ITEM, "elsewhere", 9, None),
        sent("1.0.0", "write", "group"),
        sent("1.0.1", "write", "group"),
        sent("1.0.2", "write", "group", "Released"),
        sent("1.0.r", "write", "repair"),
        done("write", seconds=1.5, cost=Cost(rollouts=3, tokens=10)),
        done("write", outcome="discarded", reason="stale", seconds=2.0, cost=Cost(rollouts=4, tokens=11)),
        done("elsewhere", seconds=7.0),
    ).stages["write"]
    assert (counts.items_in, counts.gaps, counts.items_out) == (2, 5, 2)
    assert (counts.consumed, counts.discarded, counts.ended, dict(counts.reasons)) == (1, 1, 2, {"stale": 1})
    assert (counts.busy_seconds, counts.rollouts, counts.tokens) == (3.5, 7, 21)


def test_what_was_judged_stale() -> None:
    counters = counted(
        ItemTaken(ITEM, "write", 9, None),
        ItemTaken(ITEM, "write", 2, "continue"),
        ItemTaken(ITEM, "write", 5, "discard"),
        ItemTaken(ITEM, "write", 3, "repair"),
        sent("1.0.r.0", "repair", "write"),
        RepairUnparsable("repair", ItemId("2.0.r"), "c1", 2, "no verdict"),
        sent("2.0.r.0", "repair", "write"),
        sent("2.0.r.1", "repair", "write"),
    )
    seen = counters.staleness
    assert (seen.seen, seen.discarded, seen.max_gap) == (3, 1, 5)
    assert seen.repaired == 2, "what could not be read goes on once as it was"


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        (added(), 1),
        (added("speculative"), 0),
        (added("rejected"), 0),
        (added(operator="seed"), 0),
        (added(operator="migrate"), 0),
        (added(pool="prompts"), 0),
        (LoggedMove("c1", "main", "confirmed", None), 1),
        (LoggedMove("c1", "main", "revoked", None), 0),
        (LoggedMove("c1", "prompts", "confirmed", None), 0),
        (LoggedNote("memory", "main", {}), 0),
    ],
)
def test_what_counts_as_accepted(change: LoggedChange, accepted: int) -> None:
    assert counted(committed(change)).accepted == accepted
    assert counted(committed(change, stage="init")).accepted == 0


def test_what_became_of_what_was_released() -> None:
    moved = [LoggedMove("c1", "main", "confirmed", None)] * 2 + [LoggedMove("c2", "main", "revoked", None)] * 3
    counts = counted(committed(added("speculative"), added("confirmed"), *moved)).speculation
    assert (counts.released, counts.confirmed, counts.revoked) == (1, 2, 3)


def test_what_stopped_evaluations_saved() -> None:
    rollouts = done("write", cost=Cost(rollouts=4, tokens=40))
    saved = RolloutsSaved("write", ITEM, 3), RolloutsSaved("select", ITEM, 5), RolloutsSaved("finish", ITEM, 7)
    counts = counted(rollouts, *saved).racing
    assert (counts.stopped, counts.rollouts_saved, counts.tokens_saved) == (3, 15, 30)


def test_replies_are_counted_by_role_and_reason_with_the_first_example() -> None:
    counts = counted(
        ReplyUnparsable("write", ITEM, "no fence", "fence", "writer", example="first", again=True),
        ReplyUnparsable("write", ITEM, "no fence at all", "fence", "writer", example="second"),
        ReplyUnparsable("write", ITEM, "the reply is empty", "empty", "writer", example=""),
        ReplyPartlyRead("write", ITEM, "judge", "", None, ("length", "name"), ("too long", "unknown"), ""),
        ReplyPartlyRead("write", ITEM, "judge", "", None, ("length",), ("much too long",), ""),
        ProgramNotNew("write", ITEM, "text", "", "c1", 1.0, "same"),
    ).replies
    assert counts.to_json() == {
        "unreadable": {"writer": {"fence": 2, "empty": 1}},
        "asked_again": 1,
        "partly_read": {"judge": {"length": 2, "name": 1}},
        "examples": {
            "fence": "no fence: first",
            "empty": "the reply is empty",
            "length": "too long",
            "name": "unknown",
        },
        "not_new": {"text": 1},
    }


def test_of_reasons_in_ever_other_words_the_first_are_kept_and_all_are_counted() -> None:
    """A server may name in each failure how many tokens the request had."""
    said = [f"{NO_REPLY} HTTP 400: {number} tokens are too many" for number in range(5 * MOST_REASONS)]
    reasons = [*said, said[0], UNCHANGED]
    counters = counted(*[done("write", outcome="discarded", reason=reason) for reason in reasons])
    counts = counters.stages["write"].reasons
    assert counts == Counter(said[:MOST_REASONS]) + Counter([said[0], UNCHANGED]) + Counter(
        {"llm: …": 4 * MOST_REASONS}
    )
    assert counters.unchanged == 1


def test_batches_are_measured_where_a_policy_goes_by_them() -> None:
    gathered = ItemsGathered("gather", (ITEM, ItemId("2.0"), ItemId("3.0")))
    second = ItemDone(ItemId("2.0"), "gather", "consumed", "", 0.0, Cost())
    counters = counted(gathered, done("gather", seconds=4.0), second, done("gather", seconds=5.0))
    assert list(counters.batches["gather"]) == [Batch(3, 4.0)]
    assert list(counted(StepEnded(5, 2.5), StepEnded(6, 3.5)).steps) == [Batch(5, 2.5), Batch(6, 3.5)]


def test_what_was_spent_before_a_stage_since_items_last_left_it_together() -> None:
    counters = counted(
        done("select", cost=Cost(tokens=1)),
        done("write", cost=Cost(rollouts=2, tokens=10)),
        done("group", cost=Cost(tokens=100)),
        done("update", cost=Cost(tokens=1000)),
    )
    assert counters.since_departure("group") == Cost(rollouts=2, tokens=11)
    counters.take(Event.of(9, 0.0, ItemsGathered("group", (ITEM,))))
    assert counters.since_departure("group") == Cost()
    counters.take(Event.of(9, 0.0, done("write", cost=Cost(tokens=5))))
    assert counters.since_departure("group") == Cost(tokens=5)


def test_the_price_of_an_item_is_a_mean_over_those_that_ended() -> None:
    costs = Cost(rollouts=5, tokens=10), Cost(rollouts=2, tokens=11)
    counters = counted(done("write", cost=costs[0]), done("write", outcome="discarded", cost=costs[1]))
    assert counters.price("write") == Cost(rollouts=3, tokens=10)
    assert counters.price("group") == Cost()


def left(edits: int) -> ItemsGathered:
    return ItemsGathered("group", tuple(ItemId(str(number)) for number in range(edits)))


def overtaken(edits: int) -> list[EventBody]:
    return [CandidateRejected("c1", ITEM, OVERTAKEN)] * edits


def test_the_share_of_edits_that_are_overtaken() -> None:
    assert counted().overtaken == 0
    assert counted(*overtaken(1), CandidateRejected("c2", ITEM, "stale")).overtaken == 0.5, "as if two had not been"
    assert counted(*overtaken(5)).overtaken == 1.0
    assert counted(left(4), *overtaken(2)).overtaken == pytest.approx(2 / (4 + 0.9 * 2))
    assert counted(left(4), *overtaken(2), left(3)).overtaken == pytest.approx(1.8 / (3 + 0.9 * 5.8))


def test_the_share_of_validations_that_accept() -> None:
    taken = CandidateValidated("update", ITEM, "c1", accepted=True)
    refused = CandidateValidated("update", ITEM, "c2", accepted=False)
    stopped = EvaluationStopped("evaluate", ITEM, "c3", "behind", 4, 16)
    assert counted().accepted_share == counted(taken).accepted_share == 1.0
    assert counted(refused).accepted_share == counted(stopped).accepted_share == pytest.approx(0.7)
    released = committed(LoggedMove("c3", "main", "revoked", None)), done("update", outcome="discarded")
    assert counted(stopped, *released).accepted_share == pytest.approx(0.7), "counted once"
    assert counted(refused, refused, taken).accepted_share == pytest.approx(0.49 + 0.3 * 0.51)


def test_an_edit_that_no_other_was_made_beside_counts_little() -> None:
    alone = counted(FlowLimitChanged(1, "few calls"), *overtaken(1), left(1))
    assert alone.overtaken == pytest.approx(0.9**0.25 / (0.25 + 0.9**0.25 * 2))
    together = counted(FlowLimitChanged(2, "few calls"), *overtaken(1), left(1))
    assert together.overtaken == pytest.approx(0.9 / (1 + 0.9 * 2))
    assert together.flow_limit == FlowLimit(2, "few calls")


def test_the_last_refusal_is_kept() -> None:
    last = BudgetRefused("tokens", 20.0)
    assert counted(BudgetRefused("rollouts", 5.0), last).refused == last
