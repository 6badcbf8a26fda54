"""Interrupted runs of small algorithms made to be awkward: batches, fit, phases cut off."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import anyio
import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.core.calls import CallScope
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Gathered, Item, Ticket
from flowevolve.core.item_ids import WorkPart
from flowevolve.core.model import ChatReply, LLMError, Message, RejectedError
from flowevolve.core.pool import Add, Candidate
from flowevolve.engine.recovery.recorded_replies import AnsweredCall, RecordedReplies
from flowevolve.engine.report import RunReport
from tests.support import interruption
from tests.support.depth import cuts


class Counting(fe.Algorithm):
    """Tickets become so many candidates ``each``, committed ``gather`` at a time; init and finish take their time, and fit
    commits.
    """

    name = "counting"

    def __init__(self, *, tickets: int = 5, each: int = 1, gather: int = 1) -> None:
        self.best_so_far: Candidate | None = None
        self.archives = (self,)
        self._tickets = tickets
        self._each = each
        self._gather = gather

    def apply(self, update: object) -> None:
        pass

    def best(self) -> Candidate | None:
        return self.best_so_far

    def graph(self) -> Graph:
        return Graph(
            (
                Stage("make", self._make, ("update",)),
                CommittingStage("update", self._update, gather=self._gather),
            ),
            entry="make",
        )

    async def _make(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.expect(Ticket).ordinal >= self._tickets:
            raise Exhausted
        for more in ("", *(f"/{number}" for number in range(1, self._each))):
            await anyio.sleep(2)
            yield Emit(context.propose(fe.Artifact({"a": f"{item.id}{more}"}), parents=[], operator="new"))

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        payload = item.payload
        members = payload.items if isinstance(payload, Gathered) else (item,)
        await anyio.sleep(1)
        context.commit([Add(member.expect(Candidate)) for member in members])
        await anyio.sleep(1)
        for emission in NO_EMISSIONS:
            yield emission

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(3)
        yield Emit(context.propose(fe.Artifact({"a": "seed"}), parents=[], operator="seed"), to="update")

    async def fit(self, context: UpdateContext) -> None:
        context.commit([Add(context.propose(fe.Artifact({"a": "fit"}), parents=[], operator="fit"))])

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(5)
        for emission in NO_EMISSIONS:
            yield emission


def evolve(
    algorithm: fe.Algorithm, before: Sequence[Event] = (), *, mode: str = "stream", seconds: float | None = None
) -> tuple[RunReport, list[Event]]:
    budget = fe.Budget(hours=1) if seconds is None else fe.Budget(seconds=seconds)
    report, facts = interruption.evolve(algorithm, before, mode=mode, budget=budget)
    return report, [fact for fact in facts if isinstance(fact, Event)]


def confirmed(report: RunReport) -> list[str]:
    return sorted(candidate.artifact["a"] for candidate in report.pool.snapshot().candidates())


@pytest.mark.parametrize("gather", [1, 2])
@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_batches_and_fit_are_gone_on_with_after_any_event(mode: str, gather: int) -> None:
    whole, events = evolve(Counting(gather=gather), mode=mode)
    for end in cuts(events):
        report, combined = evolve(Counting(gather=gather), events[:end], mode=mode)
        assert confirmed(report) == confirmed(whole), f"interrupted after {events[end - 1]}"
        done = [event.data["item"] for event in combined if event.kind == "item.done"]
        assert len(done) == len(set(done))


def test_what_a_stage_hands_on_in_several_parts_is_handed_on_once_each() -> None:
    whole, events = evolve(Counting(tickets=2, each=3))
    assert confirmed(whole) == ["1", "1/1", "1/2", "2", "2/1", "2/2", "fit", "seed"]
    for end in cuts(events):
        report, combined = evolve(Counting(tickets=2, each=3), events[:end])
        assert confirmed(report) == confirmed(whole), f"interrupted after {events[end - 1]}"
        sent = sorted(str(event.data["item"]) for event in combined if event.kind == "item.sent")
        assert sent == ["0.0", "1.0", "1.1", "1.2", "2.0", "2.1", "2.2"], "each is numbered after those before it"


@pytest.mark.parametrize("mode", ["stream", "sync"])
@pytest.mark.parametrize("seconds", [1.0, 4.0])
def test_a_run_cut_off_in_init_and_killed_in_finish_goes_on(mode: str, seconds: float) -> None:
    _, events = evolve(Counting(), mode=mode, seconds=seconds)
    for end in cuts(events):
        report, _ = evolve(Counting(), events[:end], mode=mode)
        assert confirmed(report) == ["1", "2", "3", "4", "5", "fit", "seed"] or "seed" in confirmed(report)
        assert report.stop_reason == "exhausted"


def test_a_run_that_went_on_after_its_finish_is_finished_again() -> None:
    _, events = evolve(Counting(tickets=3))
    _, longer = evolve(Counting(tickets=6), events)
    finishes = [event for event in longer if event.kind == "phase.ended" and event.data["phase"] == "finish"]
    assert len(finishes) == 2
    last_flow = max(i for i, event in enumerate(longer) if event.kind == "flow.close" and event.data["flow"] != 0)
    before_finish = next(i for i in range(last_flow, 0, -1) if longer[i].kind == "flow.open")
    _, again = evolve(Counting(tickets=6), longer[:before_finish])
    assert again[-2].kind == "phase.ended"


def played(item: str, text: str, *, failure: LLMError | None = None) -> AnsweredCall:
    return AnsweredCall("s", WorkPart.read(item), 0, (Message("user", item),), failure or ChatReply(text))


def test_replies_come_back_in_their_order_each_once_and_failures_too() -> None:
    calls = [played("1/b", "first"), played("1/a", "second"), played("1/b", "third")]
    got: list[str] = []

    async def ask(recorded_replies: RecordedReplies, item: str) -> None:
        reply = await recorded_replies.reply(CallScope("s", item, None, 0, 0), [Message("user", item)])
        assert reply is not None
        got.append(reply.text)

    async def go() -> float:
        recorded_replies = RecordedReplies(calls)
        async with anyio.create_task_group() as tasks:
            for item in ("1/a", "1/b", "1/b"):
                tasks.start_soon(ask, recorded_replies, item)
        assert await recorded_replies.reply(CallScope("s", "1/b", None, 0, 0), [Message("user", "1/b")]) is None
        return anyio.current_time()

    assert clock.run(go, clock="virtual") == 0.0
    assert got == ["first", "second", "third"]

    async def fail() -> None:
        recorded_replies = RecordedReplies([played("1/a", "", failure=RejectedError("too long"))])
        with pytest.raises(RejectedError, match="too long"):
            await recorded_replies.reply(CallScope("s", "1/a", None, 0, 0), [Message("user", "1/a")])

    clock.run(fail, clock="virtual")
