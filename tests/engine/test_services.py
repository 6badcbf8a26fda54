"""What stages do to a run, where the disk is slow."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.context import StageContext
from flowevolve.core.event_kinds import RepairUnparsable
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Item, Ticket
from flowevolve.core.model import ChatReply, ChatRequest, LLMError, Message, ServerError, Usage
from flowevolve.core.record import Record
from flowevolve.llm.client.client import EMBED_BATCH
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run_plan
from flowevolve.tasks.house_style import house_style_task
from tests.support import interruption
from tests.support.depth import cuts
from tests.support.interruption import events_of


class SlowDisk:
    """Keeps nothing, and takes its time about it."""

    path = Path()

    def event(self, event: Event) -> None:
        pass

    def call(self, record: CallRecord) -> None:
        pass

    def begin(self, origin: float) -> None:
        pass

    async def settled(self) -> None:
        await anyio.sleep(5)

    def write_result(self, result: Mapping[str, object]) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_reply_is_charged_though_its_work_is_cancelled_before_the_reply_is_on_disk() -> None:
    config = parse_config(
        {
            "preset": "plain",
            "clock": "virtual",
            "algorithm": {"validation": "improvement"},
            "racing": {"policy": "confidence", "least": 4},
            "budget": {"proposals": 12},
        },
        "test",
    )
    plan = make_plan(
        config, ProvidedObjects(house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=60, seed=1)))
    )
    calls: list[CallRecord] = []

    async def go() -> Result:
        return await run_plan(plan, SlowDisk, Watchers(calls=(calls.append,)), None)

    result = clock.run(go, clock="virtual")
    assert result.report.racing.stopped
    assert result.report.spent.tokens == sum(call.reply.usage.total_tokens for call in calls if call.reply is not None)


class Useless:
    """A `flowevolve.core.model.Transport` whose answers can't be read; its server counts tokens for them."""

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        await anyio.sleep(1)
        raise ServerError("the answer has no text", usage=Usage(90, 10))

    async def models(self) -> tuple[str, ...]:
        return ("m",)

    async def aclose(self) -> None:
        pass


class Asking(fe.Algorithm):
    """Every ticket asks once, and goes on for a while whatever comes of it."""

    name = "asking"

    def __init__(self) -> None:
        """It needs no task."""

    def graph(self) -> Graph:
        return Graph((Stage("ask", self._ask, ("end",), workers=4), CommittingStage("end", self._end)), entry="ask")

    async def _end(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        for emission in NO_EMISSIONS:
            yield emission

    def best(self) -> None:
        return None

    async def _ask(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        with suppress(LLMError):
            await context.chat("task", [Message("user", "hello")])
        await anyio.sleep(10)
        for emission in NO_EMISSIONS:
            yield emission


def useless() -> Mapping[str, Role]:
    return {"task": Model(Useless(), "m")}


def test_a_budget_is_charged_for_answers_that_can_not_be_read_also_after_a_resume() -> None:
    budget = fe.Budget(tokens=1000)
    report, facts = interruption.evolve(Asking(), roles=useless, budget=budget, max_in_flight=1)
    assert (report.stop_reason, report.spent.tokens) == ("tokens", 1200)  # three calls of four attempts
    first = next(place for place, fact in enumerate(facts) if isinstance(fact, CallRecord))
    again, _ = interruption.evolve(Asking(), facts[: first + 1], roles=useless, budget=budget, max_in_flight=1)
    assert (again.stop_reason, again.spent.tokens) == ("tokens", 1200)


class Spending(Asking):
    """Every flow makes four calls, one after the other."""

    async def _ask(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        for number in range(4):
            await context.chat("task", [Message("user", str(number))])
        yield Emit(item.payload)


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_budget_in_tokens_is_passed_by_the_calls_in_flight_at_most_also_after_a_resume(mode: str) -> None:
    def spend(before: Sequence[interruption.Fact] = ()) -> tuple[int, list[interruption.Fact]]:
        budget = fe.Budget(tokens=4000)  # a flow takes 440
        report, facts = interruption.evolve(
            Spending(), before, roles=interruption.echo, budget=budget, mode=mode, max_in_flight=4
        )
        assert report.stop_reason == "tokens"
        return report.spent.tokens, facts

    most = 4000 + 4 * 110  # what the calls in flight take beyond the limit
    spent, facts = spend()
    assert 4000 <= spent < most
    for end in cuts(facts, 7):
        assert 4000 <= spend(facts[:end])[0] < most, f"interrupted after {facts[end - 1]}"


class Embedding(Asking):
    """The first flow embeds as many texts as one call takes, the second one more."""

    async def _ask(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        await context.embed(["text"] * (EMBED_BATCH + item.expect(Ticket).ordinal))
        yield Emit(item.payload)


def test_vectors_belong_to_the_work_as_a_whole_unless_one_call_does_not_take_all_texts() -> None:
    def embedding() -> Mapping[str, Role]:
        return {"embedding": Model(interruption.Echo(), "e")}

    budget = fe.Budget(tokens=10 * (2 * EMBED_BATCH + 1))
    _, facts = interruption.evolve(Embedding(), roles=embedding, budget=budget, max_in_flight=1)
    of = [fact.scope.item for fact in facts if isinstance(fact, CallRecord)]
    assert of == ["1", "2/0", f"2/{EMBED_BATCH}"]


@pytest.mark.parametrize("roles", [useless, interruption.echo])
def test_a_stage_learns_what_came_of_a_call_once_that_is_on_disk(roles: Callable[[], Mapping[str, Role]]) -> None:
    order: list[str] = []

    class Learning(Asking):
        async def _ask(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
            with suppress(LLMError):
                await context.chat("task", [Message("user", "hello")])
            order.append("known to the stage")
            yield Emit(item.payload)

    async def settled() -> None:
        await anyio.sleep(5)
        order.append("on disk")

    budget = fe.Budget(tokens=400)  # one call of four attempts
    interruption.evolve(Learning(), roles=roles, budget=budget, max_in_flight=1, settled=settled)
    assert order[:2] == ["on disk", "known to the stage"]


class Heard(Record, kind="heard"):
    """What a stage heard."""

    words: int
    by: str


def test_an_event_is_written_the_same_from_an_object_as_from_its_kind_and_data() -> None:
    class Logging(Asking):
        async def _ask(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
            context.log("heard", words=3, by="me")
            context.log(Heard(words=3, by="me"))
            context.log("repair.unparsable", candidate="c1", gap=2, error="no verdict")
            context.log(RepairUnparsable(context.stage, context.item_id, "c1", 2, "no verdict"))
            for emission in NO_EMISSIONS:
                yield emission
            raise Exhausted

    _, facts = interruption.evolve(Logging(), roles=interruption.echo, max_in_flight=1)
    for kind in ("heard", "repair.unparsable"):
        by_words, by_object = events_of(facts, kind)
        assert list(by_words.data.items()) == list(by_object.data.items())
        assert by_words.body == by_object.body
        assert by_object.data["stage"] == "ask"


@pytest.mark.parametrize("said", [{1, 2}, b"bytes", Path("a"), (number for number in range(3))])
def test_what_would_come_back_from_the_journal_as_something_else_is_refused(said: object) -> None:
    class Logging(Asking):
        async def _ask(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
            await context.chat("task", [Message("user", "hello")])
            context.log("seen", said=said)  # type: ignore[call-overload]  # what a plug-in without type checks may do
            yield Emit(item.payload)

    with pytest.raises(fe.EngineError, match=r"TypeError: Object of type .* is not JSON serializable"):
        interruption.evolve(Logging(), roles=interruption.echo, budget=fe.Budget(tokens=400), max_in_flight=1)
