"""Recalling and distilling: what a run takes from other tasks and gives to them, once, interrupted or not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from threading import current_thread
from typing import Self, cast

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.algorithms.cse.recall import Distill, Recall, shown_entries
from flowevolve.core.calls import CallRecord
from flowevolve.core.context import UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS, Emit, Exhausted, Graph, Stage, committing
from flowevolve.core.item import Item, Ticket
from flowevolve.core.pool import Candidate
from flowevolve.engine.engine import Engine
from flowevolve.experience.embedders import Embedder, HashingEmbedder, RoleEmbedder, Vector
from flowevolve.experience.entries import Entry, MemoryUnavailableError, text_to_embed
from flowevolve.experience.hashing import hashed_embedding
from flowevolve.experience.store import GlobalMemory
from flowevolve.llm.client.client import LLMClient
from flowevolve.llm.client.retry import RetryPolicy
from flowevolve.llm.scheduling.scheduler import Scheduler
from flowevolve.policies.similarity import near_groups
from flowevolve.prompts.memory import DISTILL_TITLE, QUERIES_TITLE, Direction, Insight, Step
from flowevolve.prompts.programs import ShownProgram
from flowevolve.sim.worlds.code.prompt import hinted
from tests.support.depth import cuts
from tests.support.interruption import Fact, asked, events_of, evolve
from tests.support.qdrant_server import FakeQdrant, serving
from tests.support.remembering import Agent

LOOPS = Entry("other", "unroll loops", "where they are short\nprefer: loops")
LOOPS_AGAIN = Entry("third", "unroll loops", "where they are short prefer loops")
CALLS = Entry("other", "use fewer calls", "they are slow")


class Full(GlobalMemory):
    """Answers, but takes nothing in."""

    async def add(self, entries: Sequence[Entry], vectors: Sequence[Vector]) -> None:
        raise MemoryUnavailableError("no space left")


PROGRAM = ShownProgram({"program.py": "x"}, 1.0)
STEPS = [Step(0.5, Insight(Direction("loops", "success"), "it is hot"))]


class Recalling(fe.Algorithm):
    """Recalls for every ticket, and distills at the end."""

    name = "recalling"
    roles = ("agent", "embedding")

    def __init__(
        self,
        location: str | None,
        *,
        tickets: int = 2,
        steps: Sequence[Step] = STEPS,
        embedder: Embedder | None = None,
        store: type[GlobalMemory] = GlobalMemory,
    ) -> None:
        self.recalled: list[tuple[Entry, ...]] = []
        self.distilled: tuple[Entry, ...] | None = None
        self._location = location
        self._embedder = embedder or HashingEmbedder()
        self._store = store
        self._memory: GlobalMemory | None = None
        self._opened = AsyncExitStack()
        self._recall = Recall("Find it.", lambda: self._memory)
        self._distill = Distill("this", "Find it.", lambda: self._memory)
        self._tickets = tickets
        self._steps = steps

    async def __aenter__(self) -> Self:
        if self._location is not None:
            opening = self._store.open(self._location, self._embedder)
            self._memory = await self._opened.enter_async_context(opening)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        update = committing("update", self._nothing)
        return Graph((Stage("recall", self._look, ("update",)), update), entry="recall")

    async def _look(self, item: Item[object], context: fe.StageContext) -> AsyncGenerator[Emit]:
        if item.expect(Ticket).ordinal >= self._tickets:
            raise Exhausted
        self.recalled.append(await self._recall.recall(PROGRAM, "known", context))
        for emission in NO_EMISSIONS:
            yield emission

    async def _nothing(self, item: Item[object], context: UpdateContext) -> None:
        pass

    def apply_event(self, event: Event) -> None:
        self._distill.apply_event(event)

    async def finish(self, context: fe.StageContext) -> AsyncGenerator[Emit]:
        self.distilled = await self._distill.distill(PROGRAM, self._steps, [], context)
        for emission in NO_EMISSIONS:
            yield emission


def ran(algorithm: Recalling, agent: Agent | None = None, before: Sequence[Fact] = ()) -> list[Fact]:
    report, facts = evolve(algorithm, before, roles=(agent or Agent()).roles)
    assert report.error is None
    return facts


def filled(folder: Path, *entries: Entry) -> str:
    """A memory in a folder."""

    async def go() -> None:
        async with GlobalMemory.open(folder, HashingEmbedder()) as memory:
            vectors = [hashed_embedding(text_to_embed(entry)) for entry in entries]
            await memory.add(entries, vectors)

    clock.run(go)
    return str(folder)


def held(folder: str) -> int:
    async def go() -> int:
        async with GlobalMemory.open(folder, HashingEmbedder()) as memory:
            return await memory.size()

    return clock.run(go)


def test_what_is_found_is_given_once_though_two_queries_find_it(tmp_path: Path) -> None:
    algorithm, agent = Recalling(filled(tmp_path, LOOPS, LOOPS_AGAIN, CALLS)), Agent()
    facts = ran(algorithm, agent)
    for recalled in algorithm.recalled:
        assert set(recalled) in ({CALLS, LOOPS}, {CALLS, LOOPS_AGAIN})
    assert [len(cast(list[object], event.data["entries"])) for event in events_of(facts, "memory.recalled")] == [2, 2]
    assert sum(prompt.startswith(QUERIES_TITLE) for prompt in agent.asked) == 2
    assert "known" in agent.asked[0]


def test_what_is_found_is_compared_beside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()

    def watched(vectors: Sequence[Vector], threshold: float) -> list[list[int]]:
        threads.add(current_thread().name)
        return near_groups(vectors, threshold)

    monkeypatch.setattr("flowevolve.algorithms.cse.recall.near_groups", watched)
    ran(Recalling(filled(tmp_path, LOOPS, CALLS)))
    assert threads
    assert current_thread().name not in threads


def test_an_empty_memory_and_none_cost_no_call(tmp_path: Path) -> None:
    for location in (str(tmp_path), None):
        algorithm, agent = Recalling(location, steps=()), Agent()
        ran(algorithm, agent)
        assert algorithm.recalled == [(), ()]
        assert algorithm.distilled == ()
        assert agent.asked == []


def test_entries_are_shown_with_their_lines() -> None:
    text = shown_entries([LOOPS, CALLS])
    assert (
        text
        == """- unroll loops
  where they are short
  prefer: loops
- use fewer calls
  they are slow"""
    )
    assert hinted(text, "prefer") == {"loops"}
    assert shown_entries([]) == ""


@pytest.mark.parametrize("title", [QUERIES_TITLE, DISTILL_TITLE])
@pytest.mark.parametrize("how", ["broken", "silent"])
def test_a_run_goes_on_without_a_reply(title: str, how: str, tmp_path: Path) -> None:
    agent = Agent(**{how: frozenset({title})})
    algorithm = Recalling(filled(tmp_path, LOOPS))
    ran(algorithm, agent)
    assert algorithm.recalled == ([(), ()] if title == QUERIES_TITLE else [(LOOPS,), (LOOPS,)])
    assert held(str(tmp_path)) == (3 if title == QUERIES_TITLE else 1)


def test_a_role_embeds(tmp_path: Path) -> None:
    algorithm = Recalling(str(tmp_path), embedder=RoleEmbedder())
    facts = ran(algorithm)
    assert [call.role for call in facts if isinstance(call, CallRecord)] == ["agent", "embedding"]
    assert algorithm.distilled is not None
    assert [entry.title for entry in algorithm.distilled] == ["loops", "calls"]


def test_what_was_distilled_is_there_for_the_next_run_be_it_of_the_same_task(tmp_path: Path) -> None:
    ran(Recalling(str(tmp_path)))
    following = Recalling(str(tmp_path))
    ran(following)
    assert following.recalled[0][0] == Entry("this", "loops", "unroll them")
    assert held(str(tmp_path)) == 2


def test_interrupted_after_any_event_it_recalls_the_same_and_adds_nothing_twice(tmp_path: Path) -> None:
    whole = Recalling(filled(tmp_path / "whole", LOOPS, CALLS))
    facts = ran(whole)
    for end in cuts(facts):
        folder = filled(tmp_path / str(end), LOOPS, CALLS)
        again = Recalling(folder)
        combined = ran(again, None, facts[:end])
        if not events_of(facts[:end], "memory.distilled"):  # else it was added to the other folder
            assert held(folder) == 4
        calls = [asked(call)[0].content for call in combined if isinstance(call, CallRecord)]
        assert sum(prompt.startswith(DISTILL_TITLE) for prompt in calls) == 1
        assert len(events_of(combined, "memory.recalled")) == 2


def test_a_run_that_goes_on_and_learns_distills_again(tmp_path: Path) -> None:
    facts = ran(Recalling(str(tmp_path)))
    more = [*STEPS, Step(0.25, Insight(Direction("calls", "success"), "fewer"))]
    combined = ran(Recalling(str(tmp_path), steps=more), None, facts)
    assert len(events_of(combined, "memory.distilled")) == 2
    assert held(str(tmp_path)) == 2  # the agent had nothing new to say


def test_what_could_not_be_added_is_added_once_the_run_goes_on(tmp_path: Path) -> None:
    before = Recalling(filled(tmp_path / "full", LOOPS), store=Full)
    facts = ran(before)
    assert before.distilled == ()
    places = [
        place for place, fact in enumerate(facts) if isinstance(fact, Event) and fact.kind == "memory.unavailable"
    ]
    assert len(places) == 1
    for end in range(places[0], len(facts) + 1):
        folder = filled(tmp_path / str(end), LOOPS)
        combined = ran(Recalling(folder), None, facts[:end])
        assert held(folder) == 3
        assert len(events_of(combined, "memory.distilled")) == 1


def test_others_may_add_while_a_run_is_interrupted(tmp_path: Path) -> None:
    folder = filled(tmp_path, LOOPS)
    facts = ran(Recalling(folder, tickets=1, steps=()))
    end = next(place for place, fact in enumerate(facts) if isinstance(fact, Event) and fact.kind == "memory.recalled")
    filled(tmp_path, CALLS)
    again = Recalling(folder, tickets=1, steps=())
    ran(again, None, facts[: end + 1])
    assert again.recalled == [(LOOPS,)]


def test_a_store_that_fails_in_the_middle_of_a_run_costs_the_experience_alone() -> None:
    qdrant = FakeQdrant()

    class Breaking(Recalling):
        async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
            qdrant.broken = "error"
            async for emission in super().init(context):
                yield emission

    async def go(url: str) -> list[Event]:
        events: list[Event] = []
        client = LLMClient(Agent().roles(), Scheduler(8), RetryPolicy(), 0, lambda call: None)
        async with Breaking(url) as algorithm:
            engine = Engine(algorithm, llm=client, budget=fe.Budget(hours=1), sinks=[events.append])
            report = await engine.run()
        assert report.error is None
        return events

    async def served() -> list[Event]:
        async with serving(qdrant) as url:
            return await go(url)

    events = clock.run(served)
    errors = [event.data["error"] for event in events if event.kind == "memory.unavailable"]
    assert len(errors) == 3
    assert all("500" in str(error) for error in errors)
    assert [event.data.get("error") for event in events if event.kind == "memory.looked"] == errors[:2]
    assert not [event for event in events if event.kind == "memory.distilled"]
