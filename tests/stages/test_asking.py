"""Asking agents: what is read, what is logged, and whose tokens they are."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace

import flowevolve as fe
from flowevolve.core.context import UpdateContext
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS, Emit, Exhausted, Graph, Stage, committing
from flowevolve.core.item import Item
from flowevolve.core.model import ChatReply, ChatRequest, LLMError, Usage
from flowevolve.core.pool import Candidate
from flowevolve.core.reply_reading import UnparsableReplyError
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.prompts.memory import QUERIES_TITLE, read_queries
from flowevolve.stages.asking import ask, tokens_by_agent, try_asking
from tests.support.interruption import Fact, events_of, evolve
from tests.support.remembering import Agent

PROMPT = f"{QUERIES_TITLE}\n"


class Asking(fe.Algorithm):
    """Asks in init, twice, and keeps what came of it."""

    name = "asking"
    roles = ("agent",)

    def __init__(self) -> None:
        self.got: list[object] = []

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        return Graph((Stage("end", self._end, ("update",)), committing("update", self._nothing)), "end")

    async def _end(self, item: Item[object], context: fe.StageContext) -> AsyncGenerator[Emit]:
        for emission in NO_EMISSIONS:
            yield emission
        raise Exhausted

    async def _nothing(self, item: Item[object], context: UpdateContext) -> None:
        pass

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        try:
            self.got.append(await ask(context, "agent", PROMPT, lambda reply: read_queries(reply, 2), agent="first"))
        except (UnparsableReplyError, LLMError) as error:
            self.got.append(type(error))
        self.got.append(
            await try_asking(context, "agent", PROMPT, lambda reply: read_queries(reply, 1), agent="second")
        )
        for emission in NO_EMISSIONS:
            yield emission


def asked(agent: Agent) -> tuple[list[object], list[Fact]]:
    algorithm = Asking()
    _, facts = evolve(algorithm, roles=agent.roles)
    return algorithm.got, facts


def test_a_reply_is_read_and_its_tokens_are_its_agents() -> None:
    got, facts = asked(Agent())
    assert got == [("unroll loops", "use fewer calls"), ("unroll loops",)]
    tokens = tokens_by_agent(fact for fact in facts if isinstance(fact, Event))
    assert set(tokens) == {"first", "second"}
    assert tokens["first"] == tokens["second"] != Usage()


def test_a_reply_that_can_not_be_read_is_logged_and_paid_for() -> None:
    got, facts = asked(Agent(broken=frozenset({QUERIES_TITLE})))
    assert got == [UnparsableReplyError, None]
    said = [
        (event.data["agent"], event.data["role"], event.data["error"]) for event in events_of(facts, "reply.unparsable")
    ]
    assert said == [(name, "agent", "no JSON object or array in the reply") for name in ("first", "second")]
    assert len(events_of(facts, "agent.answered")) == 2


def test_without_a_reply_who_can_not_go_on_is_told_and_who_can_goes_on() -> None:
    got, facts = asked(Agent(silent=frozenset({QUERIES_TITLE})))
    assert isinstance(got[0], type)
    assert issubclass(got[0], LLMError)
    assert got[1] is None
    assert [event.data["agent"] for event in events_of(facts, "reply.missing")] == ["second"]
    assert not events_of(facts, "agent.answered")


class Fumbling(Agent):
    """Answers in its form only when it is asked again."""

    def __init__(self, fumbles: int) -> None:
        super().__init__()
        self.chats: list[ChatRequest] = []
        self._fumbles = fumbles

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        self.chats.append(request)
        if len(self.chats) <= self._fumbles:
            return ChatReply("Let me see.", Usage(10, 5))
        return await super().chat(replace(request, messages=request.messages[:1]), timeout=timeout)

    def roles(self) -> Mapping[str, Role]:
        return {name: Model(self, "agent", retries=1) for name in ("agent", "embedding")}


def test_a_reply_that_can_not_be_read_is_asked_for_once_more_with_the_error_in_words() -> None:
    agent = Fumbling(1)
    algorithm = Asking()
    report, facts = evolve(algorithm, roles=agent.roles)
    assert algorithm.got == [("unroll loops", "use fewer calls"), ("unroll loops",)]
    assert [len(chat.messages) for chat in agent.chats] == [1, 3, 1]
    prompt, reply, again = agent.chats[1].messages
    assert (prompt.content, reply.content) == (PROMPT, "Let me see.")
    assert "no JSON object or array in the reply" in again.content
    (event,) = events_of(facts, "reply.unparsable")
    assert (event.data["reason"], event.data["example"], event.data["again"]) == ("missing", "Let me see.", True)
    assert report.replies.unreadable == {"agent": {"missing": 1}}
    assert report.replies.asked_again == 1
    assert "Let me see." in report.replies.examples["missing"]


def test_it_is_asked_no_more_often_than_the_role_says() -> None:
    agent = Fumbling(9)
    algorithm = Asking()
    report, facts = evolve(algorithm, roles=agent.roles)
    assert algorithm.got == [UnparsableReplyError, None]
    assert [event.data.get("again", False) for event in events_of(facts, "reply.unparsable")] == [True, False] * 2
    assert report.replies.unreadable == {"agent": {"missing": 4}}
