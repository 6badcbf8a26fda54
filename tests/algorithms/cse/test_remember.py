"""Reflection and compression as stages, and runs of them that are interrupted after any event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from flowevolve._util.json_types import JSON
from flowevolve.algorithms.cse.memory import Memory, NewDigest, NewLesson
from flowevolve.core.calls import CallRecord
from flowevolve.core.model import ChatReply, ChatRequest
from flowevolve.core.pool import Add, Note, Pool
from flowevolve.prompts.memory import BOARD_HEADING, COMPRESS_TITLE, LESSONS_KEPT, REFLECT_TITLE, Lesson, shown_board
from flowevolve.sim.worlds.code.prompt import sections
from tests.support.depth import cuts
from tests.support.interruption import Fact, asked, events_of, evolve
from tests.support.remembering import Agent, Remembering


def ran(
    algorithm: Remembering, agent: Agent | None = None, before: Sequence[Fact] = (), mode: str = "stream"
) -> tuple[Pool, list[Fact]]:
    report, facts = evolve(algorithm, before, roles=(agent or Agent()).roles, mode=mode)
    assert report.error is None
    return report.pool, facts


def notes(pool: Pool, kind: str) -> list[dict[str, JSON]]:
    changes = [change for update in pool.updates_between(0) for change in update.changes]
    return [dict(change.data) for change in changes if isinstance(change, Note) and change.kind == kind]


def children(pool: Pool) -> list[str]:
    changes = [change for update in pool.updates_between(0) for change in update.changes]
    return [change.candidate.id for change in changes if isinstance(change, Add) and change.candidate.parents]


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_every_child_teaches_once_and_the_memory_keeps_to_its_limit(mode: str) -> None:
    algorithm, agent = Remembering(tickets=12), Agent()
    pool, _ = ran(algorithm, agent, mode=mode)
    learned = notes(pool, NewLesson.kind)
    assert sorted(str(each["candidate"]) for each in learned) == sorted(children(pool))
    assert len(learned) == 12
    assert notes(pool, NewDigest.kind)
    assert algorithm.memory.tokens <= 100
    counted = sum(count for _, count in algorithm.memory.directions)
    assert 0 < counted <= 12
    assert sum(prompt.startswith(COMPRESS_TITLE) for prompt in agent.asked) == len(notes(pool, NewDigest.kind))


def test_a_child_that_failed_teaches_what_to_leave_alone_whatever_the_reply_claims() -> None:
    algorithm = Remembering(tickets=1)
    pool, _ = ran(algorithm)
    [learned] = notes(pool, NewLesson.kind)
    assert learned["change"] == -3.0
    assert learned["outcome"] == "failed"
    assert algorithm.memory.lessons == [Lesson("failed", "It is about numbers: -3.0.")]


class Indifferent(Agent):
    """Calls every change neutral."""

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        reply = await super().chat(request, timeout=timeout)
        return replace(reply, text=reply.text.replace('"outcome": "success"', '"outcome": "neutral"'))


def test_a_reply_may_call_a_change_neutral_of_a_child_that_works_whatever_its_score() -> None:
    pool, _ = ran(Remembering(tickets=7), Indifferent())
    outcomes = {float(cast(float, each["change"])): each["outcome"] for each in notes(pool, NewLesson.kind)}
    assert outcomes == {
        -3.0: "failed",
        -2.0: "neutral",
        -1.0: "neutral",
        0.0: "neutral",
        2.0: "neutral",
        3.0: "neutral",
    }


def test_a_reflection_is_shown_the_directions_that_were_known_when_it_began() -> None:
    algorithm, agent = Remembering(tickets=6, limit_tokens=10_000), Agent()
    pool, facts = ran(algorithm, agent)
    shown = [
        sections(prompt).get(BOARD_HEADING, "").replace("```", "").strip()
        for prompt in agent.asked
        if prompt.startswith(REFLECT_TITLE)
    ]
    settled = events_of(facts, "memory.board")
    assert Counter(shown) == Counter(str(event.data["directions"]) for event in settled)
    for event in settled:
        known = Memory.as_of(pool.updates_between(0, cast(int, event.data["version"])))
        assert event.data["directions"] == shown_board(known.directions)
    assert shown[0] == ""
    assert "- numbers by " in shown[-1]


def test_a_child_enters_the_pool_whatever_becomes_of_its_reflection() -> None:
    for agent in (Agent(broken=frozenset({REFLECT_TITLE})), Agent(silent=frozenset({REFLECT_TITLE}))):
        algorithm = Remembering(tickets=3)
        pool, facts = ran(algorithm, agent)
        assert len(children(pool)) == 3
        assert algorithm.memory.entries == ()
        missed = [*events_of(facts, "reply.unparsable"), *events_of(facts, "reply.missing")]
        assert [event.data["agent"] for event in missed] == ["reflect"] * 3


@pytest.mark.parametrize(
    "agent", [Agent(broken=frozenset({COMPRESS_TITLE})), Agent(silent=frozenset({COMPRESS_TITLE}))]
)
def test_a_memory_that_nobody_shortens_is_cut_down(agent: Agent) -> None:
    algorithm = Remembering(tickets=30)
    pool, _ = ran(algorithm, agent)
    assert notes(pool, NewDigest.kind)
    assert len(algorithm.memory.lessons) <= LESSONS_KEPT + 4
    assert algorithm.memory.tokens <= 200


def test_interrupted_after_any_event_neither_evaluation_nor_reflection_is_lost_or_done_twice() -> None:
    whole = Remembering(tickets=6)
    pool, facts = ran(whole)
    assert notes(pool, NewDigest.kind)
    for end in cuts(facts):
        algorithm, agent = Remembering(tickets=6), Agent()
        pool, combined = ran(algorithm, agent, facts[:end])
        assert sorted(str(each["candidate"]) for each in notes(pool, NewLesson.kind)) == sorted(children(pool))
        assert len(children(pool)) == 6
        measured = Counter(str(event.data["item"]) for event in events_of(combined, "measured"))
        assert set(measured.values()) == {1}
        calls = [call for call in combined if isinstance(call, CallRecord)]
        reflections = [asked(call)[0].content for call in calls if asked(call)[0].content.startswith(REFLECT_TITLE)]
        assert len(reflections) == len(set(reflections)) == 6
        answered = [event for event in events_of(combined, "agent.answered") if event.data["agent"] == "reflect"]
        assert len(answered) == 6
        assert algorithm.memory.read.keys()
        for note in notes(pool, NewDigest.kind):
            assert cast("dict[str, int]", note["read"])
