"""Embeddings in a whole run: charged, journaled and counted as any other call, and used again as any other reply."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve._util.registry import Registry
from flowevolve.algorithms.gepa import GEPA
from flowevolve.config.run import parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Item, Ticket
from flowevolve.core.model import EmbedReply, EmbedRequest, Message, RejectedError, Usage
from flowevolve.core.pool import Add, Candidate
from flowevolve.experience.hashing import hashed_embedding
from flowevolve.journal.reading import RecordedRun
from flowevolve.llm.client.client import EMBED_BATCH
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.runner import assemble as build
from flowevolve.runner.result import Result
from flowevolve.runner.resume import resume
from flowevolve.runner.run import run
from tests.support.depth import cuts
from tests.support.interruption import Echo, evolve
from tests.support.journals import edited

TEXTS = ["one text", "another text"]


class Measuring(GEPA):
    """Embeds two texts before it starts."""

    name = "measuring"
    roles = ("task", "reflection", "embedding")
    vectors: tuple[tuple[float, ...], ...] = ()

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        Measuring.vectors = await context.embed(TEXTS)
        async for emission in super().init(context):
            yield emission


def measured(out: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    """A run of `Measuring` whose embeddings alone cost something: a millionth of a dollar a token."""
    monkeypatch.setattr(build, "ALGORITHMS", Registry("algorithm", "nowhere", {"measuring": Measuring}))
    prices = {"simulated": {"input": 0, "output": 0}, "e": {"input": 1, "output": 0}}
    config = parse_config(
        {
            "clock": "virtual",
            "algorithm": {"name": "measuring"},
            "budget": {"proposals": 1},
            "llm": {"roles": {"embedding": {"model": "e"}}, "prices": prices},
        },
        "test",
    )

    async def go() -> Result:
        return await run(config, out=out)

    return clock.run(go, clock="virtual")


def test_a_stage_embeds_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = measured(tmp_path / "out", monkeypatch)
    assert Measuring.vectors == tuple(map(hashed_embedding, TEXTS))
    embedded = result.by_model["e"].totals
    assert (embedded.requests, embedded.usage.prompt_tokens, embedded.usage.completion_tokens) == (1, 5, 0)
    assert result.report.spent.dollars == pytest.approx(5e-6)
    with RecordedRun(tmp_path / "out") as recorded:
        [call] = [call for call in recorded.calls() if call.role == "embedding"]
    assert (call.stage, call.model, call.cached) == ("init", "e", False)
    assert call.messages is not None
    assert [message.content for message in call.messages] == list(TEXTS)
    assert json.loads(call.reply or "") == [list(vector) for vector in Measuring.vectors]


def test_vectors_in_the_journal_are_used_when_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(tmp_path, monkeypatch)
    vectors, Measuring.vectors = Measuring.vectors, ()
    (tmp_path / "result.json").unlink()
    with edited(tmp_path) as database:
        database.execute("DELETE FROM calls WHERE role <> 'embedding'")
        database.execute("DELETE FROM events WHERE seq > (SELECT max(seq) FROM calls)")

    async def go_on() -> Result:
        return await resume(tmp_path, changes=["budget.proposals=2"])

    result = clock.run(go_on, clock="virtual")
    assert Measuring.vectors == vectors
    assert result.by_model["e"].totals.requests == 1
    assert result.report.spent.dollars == result.llm.dollars == pytest.approx(5e-6)


class Placing(fe.Algorithm):
    """For every ticket: asks one thing, embeds many texts, asks another, and proposes what the vectors add up to."""

    name = "placing"

    def __init__(self, texts: int = 2 * EMBED_BATCH + 1) -> None:
        self.archives = ()
        self._texts = ["x" * (number % 7) for number in range(texts)]

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        stages = (Stage("place", self._place, ("update",), workers=2), CommittingStage("update", self._update))
        return Graph(stages, entry="place")

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        for emission in NO_EMISSIONS:
            yield emission

    async def _place(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if item.expect(Ticket).ordinal >= 2:
            raise Exhausted
        await context.chat("task", [Message("user", "before")])
        vectors = await context.embed(self._texts)
        total = sum((place + 1) * vector[0] for place, vector in enumerate(vectors))
        reply = await context.chat("task", [Message("user", f"{total:.0f}")])
        yield Emit(context.propose(fe.Artifact({"a": reply.text}), parents=[], operator="placed"))

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        context.commit([Add(item.expect(Candidate))])
        for emission in NO_EMISSIONS:
            yield emission


def two_roles(server: Echo | None = None) -> Mapping[str, Role]:
    server = server or Echo()
    return {"task": Model(server, "echo"), "embedding": Model(server, "e")}


def calls_in(facts: Sequence[object]) -> list[CallRecord]:
    return [fact for fact in facts if isinstance(fact, CallRecord)]


def embedded(calls: Sequence[CallRecord]) -> list[tuple[str, int]]:
    """The calls for embeddings, in order, and how many texts each had."""
    requests = [(call.scope.item, call.request) for call in calls]
    return sorted((item, len(request.texts)) for item, request in requests if isinstance(request, EmbedRequest))


def tokens(calls: Sequence[CallRecord]) -> int:
    return sum((call.failed_usage if call.reply is None else call.reply.usage).total_tokens for call in calls)


def test_many_texts_go_in_several_calls_and_come_back_in_order() -> None:
    report, facts = evolve(Placing(), roles=two_roles)
    sizes = [(f"{flow}/{start}", min(EMBED_BATCH, 257 - start)) for flow in (1, 2) for start in (0, 128, 256)]
    assert embedded(calls_in(facts)) == sorted(sizes)
    expected = sum((place + 1) * (place % 7) for place in range(257))
    assert {candidate.artifact["a"] for candidate in report.pool.snapshot().candidates()} == {str(expected)}
    assert report.spent.tokens == tokens(calls_in(facts)) == 2 * (2 * 110 + 2570)


def test_no_texts_are_no_call() -> None:
    _, facts = evolve(Placing(texts=0), roles=two_roles)
    assert embedded(calls_in(facts)) == []


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_interrupted_after_any_event_or_call_no_embedding_is_paid_twice(mode: str) -> None:
    whole, facts = evolve(Placing(), roles=two_roles, mode=mode)
    for end in cuts(facts):
        report, combined = evolve(Placing(), facts[:end], roles=two_roles, mode=mode)
        assert embedded(calls_in(combined)) == embedded(calls_in(facts)), f"interrupted after {facts[end - 1]}"
        assert report.spent == whole.spent
        assert report.pool.version == whole.pool.version


def test_vectors_that_nobody_asks_for_again_are_charged_all_the_same() -> None:
    _, facts = evolve(Placing(), roles=two_roles)
    end = next(place for place, fact in enumerate(facts) if isinstance(fact, CallRecord) and fact.role == "embedding")
    report, combined = evolve(Placing(texts=1), facts[: end + 1], roles=two_roles)
    assert report.spent.tokens == tokens(calls_in(combined))


class Choosy(Echo):
    """Rejects the last of many texts, at once or once the others are embedded."""

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once

    async def embed(self, request: EmbedRequest, *, timeout: float | None) -> EmbedReply:
        if len(request.texts) == 1 and self._at_once:
            raise RejectedError("too long", usage=Usage(3))
        reply = await super().embed(request, timeout=timeout)
        if len(request.texts) == 1:
            raise RejectedError("too long", usage=Usage(3))
        return reply


@pytest.mark.parametrize("at_once", [True, False])
def test_embeddings_that_came_in_are_charged_where_others_beside_them_failed(at_once: bool) -> None:
    report, facts = evolve(Placing(), roles=lambda: two_roles(Choosy(at_once=at_once)))
    assert len(embedded(calls_in(facts))) == (2 if at_once else 6)
    assert report.spent.tokens == tokens(calls_in(facts))
    for end in cuts(facts):
        report, combined = evolve(Placing(), facts[:end], roles=lambda: two_roles(Choosy(at_once=at_once)))
        assert report.spent.tokens == tokens(calls_in(combined))
