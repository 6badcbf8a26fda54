"""fit, what an algorithm learns between init and the stream: it may call LLMs, and is interrupted like anything else."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

import flowevolve as fe
from flowevolve._util.errors import BackendRefusedError, TaskFailedError
from flowevolve.core.calls import CallRecord
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Item
from flowevolve.core.model import ChatReply, ChatRequest, Message, RejectedError
from flowevolve.core.pool import Add, Candidate
from flowevolve.llm.client.model import Model
from tests.support.depth import cuts
from tests.support.interruption import Echo, echo, events_of, evolve


class Learning(fe.Algorithm):
    """Asks an LLM about its seed in fit, twice, and commits what comes of it each time."""

    name = "learning"
    archives = ()

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        return Graph((Stage("start", self._start), CommittingStage("update", self._update)), entry="start")

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        reply = await context.chat("task", [Message("user", "seed")])
        yield Emit(context.propose(fe.Artifact({"a": reply.text}), parents=[], operator="seed"), to="update")

    async def fit(self, context: UpdateContext) -> None:
        for said in ("one", "two"):
            idea = context.propose(fe.Artifact({"a": f"{said} before"}), parents=[], operator="fit")
            asked = context.decide("fit.asked", lambda: {"version": context.pool.version})
            reply = await context.chat("task", [Message("user", f"{said} of {asked['version']}")])
            if self._failure is not None:
                raise self._failure
            context.reject(idea, "a try")
            context.commit([Add(context.propose(fe.Artifact({"a": reply.text}), parents=[], operator="fit"))])

    async def _start(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        raise Exhausted
        yield Emit(None)  # type: ignore[unreachable]  # makes it a generator

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        context.commit([Add(item.expect(Candidate))])
        for emission in NO_EMISSIONS:
            yield emission


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_interrupted_after_any_event_or_call_fit_pays_nothing_twice_and_learns_the_same(mode: str) -> None:
    _, facts = evolve(Learning(), roles=echo, mode=mode)
    for end in cuts(facts):
        report, combined = evolve(Learning(), facts[:end], roles=echo, mode=mode)
        texts = [candidate.artifact["a"] for candidate in report.pool.snapshot().candidates()]
        assert texts == ["SEED", "ONE OF 1", "TWO OF 2"]
        assert report.spent.tokens == 330
        assert sum(isinstance(fact, CallRecord) for fact in combined) == 3
        assert [event.data["phase"] for event in events_of(combined, "phase.ended")].count("init") == 1
        assert events_of(combined, "phase.ended")[0].data["cost"] == {"tokens": 220}
        proposed = [str(event.data["candidate"]) for event in events_of(combined, "candidate.proposed")]
        assert len(proposed) == 5
        assert not [name for name in proposed if report.pool.status(name) == "proposed"]


class Another(Learning):
    """Does nothing in fit."""

    async def fit(self, context: UpdateContext) -> None:
        pass


def test_what_fit_had_proposed_and_does_not_propose_again_is_rejected() -> None:
    _, facts = evolve(Learning(), roles=echo)
    end = facts.index(events_of(facts, "candidate.proposed")[1]) + 1
    report, combined = evolve(Another(), facts[:end], roles=echo)
    assert [event.data["reason"] for event in events_of(combined, "candidate.rejected")] == ["not proposed again"]
    assert report.pool.version == 1


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_what_fit_was_answered_is_charged_though_it_does_not_ask_again(mode: str) -> None:
    _, facts = evolve(Learning(), roles=echo, mode=mode)
    _, first, _ = (place for place, fact in enumerate(facts) if isinstance(fact, CallRecord))
    report, combined = evolve(Another(), facts[: first + 1], roles=echo, mode=mode)
    assert report.spent.tokens == 220
    assert events_of(combined, "phase.ended")[0].data["cost"] == {"tokens": 110}


def test_a_fit_that_fails_ends_the_run_and_is_done_when_it_goes_on() -> None:
    for failure, kind in ((TaskFailedError("broken"), TaskFailedError), (RejectedError("no"), BackendRefusedError)):
        report, facts = evolve(Learning(failure), roles=echo)
        assert isinstance(report.error, kind)
        assert report.stop_reason == "failed"
        assert not events_of(facts, "phase.ended")
        report, combined = evolve(Learning(), facts, roles=echo)
        assert report.pool.version == 3
        replies = [fact.reply for fact in combined if isinstance(fact, CallRecord)]
        assert [reply.text for reply in replies if isinstance(reply, ChatReply)] == ["SEED", "ONE OF 1", "TWO OF 2"]


def test_a_budget_that_is_too_small_for_fit_is_told_as_such() -> None:
    report, _ = evolve(Learning(), roles=echo, budget=fe.Budget(tokens=200))
    assert isinstance(report.error, fe.InputError)
    assert str(report.error).startswith("budget.tokens was used up before fit() of algorithm 'learning' was done")


class Refusing(Echo):
    """Refuses what fit asks last."""

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        if request.messages[-1].content.startswith("two"):
            raise RejectedError("too long")
        return await super().chat(request, timeout=timeout)


def test_a_reply_that_fit_could_not_do_without_is_asked_for_again_when_it_goes_on() -> None:
    report, facts = evolve(Learning(), roles=lambda: {"task": Model(Refusing(), "echo")})
    assert isinstance(report.error, BackendRefusedError)
    report, combined = evolve(Learning(), facts, roles=echo)
    assert report.error is None
    assert report.pool.version == 3
    assert len([fact for fact in combined if isinstance(fact, CallRecord)]) == 4  # the one that was refused, twice


def test_fit_is_cut_off_when_time_is_up() -> None:
    report, facts = evolve(Learning(), roles=echo, budget=fe.Budget(seconds=3), drain_seconds=0.5)
    assert report.stop_reason == "seconds"
    assert [event.data["phase"] for event in events_of(facts, "phase.ended")] == ["finish"]
    report, facts = evolve(Learning(), facts, roles=echo)
    assert report.pool.version == 3
