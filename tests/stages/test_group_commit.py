"""Group commit: what edits are merged onto, what the model is asked, and what becomes of edits and groups."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import pytest

import flowevolve as fe
from flowevolve.core.context import UpdateContext
from flowevolve.core.event_kinds import CandidateProposed
from flowevolve.core.events import Event
from flowevolve.core.graph import Discard, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Item, Ticket
from flowevolve.core.item_ids import ItemId
from flowevolve.core.model import ChatReply, ChatRequest, RejectedError, Usage
from flowevolve.core.policies import Departure, Waiting
from flowevolve.core.pool import Add, Candidate, Move
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.prompts.reading.fences import fence, labelled_blocks
from flowevolve.prompts.reflection import WRITE_HEADING
from flowevolve.stages import committing
from flowevolve.stages.group_commit import Group, GroupCommit, Head, Way
from flowevolve.stages.payloads import Proposed
from tests.support.interruption import Echo, Fact, events_of, evolve

SEED = {"a": "seed a", "b": "seed b"}


def shown_texts(prompt: str) -> list[str]:
    """The texts of a prompt above the description of the reply, which has an example."""
    return [text for _, text in labelled_blocks(prompt.partition(WRITE_HEADING)[0])]


class Merger(Echo):
    """Answers with the lines of all texts in a prompt, each once. The first ``broken`` replies can't be read."""

    def __init__(self, broken: int = 0, *, refuses: bool = False) -> None:
        self.prompts: list[str] = []
        self._broken = broken
        self._refuses = refuses

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        prompt = request.messages[0].content
        self.prompts.append(prompt)
        await anyio.sleep(1)
        if self._refuses:
            raise RejectedError("not this one")
        if len(self.prompts) <= self._broken:
            return ChatReply("They have much in common.", Usage(100, 10))
        lines = dict.fromkeys(line for text in shown_texts(prompt) for line in text.splitlines())
        return ChatReply(fence("\n".join(lines)), Usage(100, 10))

    def roles(self) -> Mapping[str, Role]:
        return {"reflection": Model(self, "merger", retries=1)}


class TakesNothingOver(Merger):
    """Answers with what the seed says, whatever the edits."""

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        return ChatReply(fence(SEED["a"]), Usage(100, 10))


class AtOnce:
    """All leave together when nothing more can come."""

    def leaves(self, waiting: Waiting) -> bool:
        return not waiting.upstream


class OneByOne:
    """Whatever waits leaves."""

    def leaves(self, waiting: Waiting) -> bool:
        return True


@dataclass
class Grouping(fe.Algorithm):
    """Every ticket edits the seed, or what ``origin`` says; groups take ten seconds to be validated, and ``passes`` says
    whether they are any good.
    """

    name = "grouping"
    roles = ("reflection",)
    edits: Sequence[Mapping[str, str]]
    passes: Sequence[bool] = ()
    on_head: bool = False
    most_characters: int = 40_000
    asks: bool = True
    delay: float = 0.0
    departs: Departure = field(default_factory=AtOnce)
    ways: Mapping[Way, float] = field(default_factory=lambda: {"model": 1.0})

    def __post_init__(self) -> None:
        self._best: Candidate | None = None
        self.head = Head(self.best, self.ways)
        self.archives = (self, self.head)
        self._validated = 0

    def best(self) -> Candidate | None:
        return self._best

    def apply(self, update: fe.Update) -> None:
        for candidate in update.added():
            self._best = candidate

    def apply_event(self, event: Event) -> None:
        self.head.apply_event(event)

    def graph(self) -> Graph:
        group = GroupCommit(self.head, self.most_characters, self.asks)
        return Graph(
            (
                Stage("start", self._start, ("group",)),
                Stage("group", group, ("validate",), gather=8, departs=self.departs),
                Stage("validate", self._validate, ("update",), workers=4),
                committing("update", self._update),
            ),
            entry="start",
        )

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        seed = context.propose(fe.Artifact(SEED), parents=[], operator="seed")
        yield Emit(Proposed(seed, (), ()), to="update")

    async def _start(self, item: Item[object], context: fe.StageContext) -> AsyncGenerator[Emit]:
        ordinal = item.expect(Ticket).ordinal
        if ordinal >= len(self.edits):
            raise Exhausted
        await anyio.sleep(self.delay * ordinal)
        parent = context.pool[self.head.id()] if self.on_head else context.pool["c0"]
        candidate = context.propose(
            parent.artifact.replace(**self.edits[ordinal]), parents=[parent], operator="reflect"
        )
        yield Emit(Proposed(candidate, (), (), origin=parent.artifact))

    async def _validate(self, item: Item[object], context: fe.StageContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(10)
        self._validated += 1
        if not [True, *self.passes, True][min(self._validated, len(self.passes) + 1)]:
            raise Discard("worse")
        yield Emit(item.payload)

    async def _update(self, item: Item[object], context: UpdateContext) -> None:
        context.commit([Add(item.expect(Proposed).candidate.scored({"x": float(context.pool.version)}))])


def grouped(algorithm: Grouping, merger: Merger | None = None) -> tuple[list[Mapping[str, str]], list[Fact]]:
    """The texts of all groups in their order, and all facts."""
    merger = merger or Merger()
    report, facts = evolve(algorithm, roles=merger.roles, max_in_flight=8)
    names = [str(event.data["candidate"]) for event in events_of(facts, "candidate.proposed")]
    groups = [name for name in names if name in report.pool and report.pool.status(name) == "confirmed"][1:]
    return [dict(report.pool[name].artifact) for name in groups], facts


def test_a_single_edit_of_the_head_is_taken_as_it_is() -> None:
    merger = Merger()
    texts, _ = grouped(Grouping([{"a": "better a"}]), merger)
    assert texts == [{"a": "better a", "b": "seed b"}]
    assert not merger.prompts


def test_edits_are_merged_component_by_component_and_validated_once() -> None:
    merger = Merger()
    texts, facts = grouped(Grouping([{"a": "one"}, {"a": "two"}, {"b": "three"}]), merger)
    assert texts == [{"a": "seed a\none\ntwo", "b": "three"}]
    assert len(merger.prompts) == 1
    (departed,) = events_of(facts, "group.departed")
    assert departed.data["head"] == "c0"
    assert len(Group.from_json(departed.data).edits) == 3
    reasons = {str(event.data["reason"]) for event in events_of(facts, "candidate.rejected")}
    assert len(reasons) == 1
    assert next(iter(reasons)).startswith("merged into c")


def test_the_prompt_shows_the_head_and_each_edit_with_what_it_began_with() -> None:
    merger = Merger()
    grouped(Grouping([{"a": "one"}, {"a": "two"}], on_head=True), merger)
    (prompt,) = merger.prompts
    assert shown_texts(prompt) == ["seed a", "one", "two"]
    assert prompt.count("It began with the current version.") == 2


def test_a_reply_that_can_not_be_read_is_asked_for_once_more() -> None:
    merger = Merger(broken=1)
    texts, facts = grouped(Grouping([{"a": "one"}, {"a": "two"}]), merger)
    assert texts == [{"a": "seed a\none\ntwo", "b": "seed b"}]
    assert len(merger.prompts) == 2
    assert not events_of(facts, "merge.failed")


@pytest.mark.parametrize("merger", [Merger(broken=9), Merger(refuses=True)])
def test_where_no_merge_can_be_had_new_texts_are_validated_as_they_are(merger: Merger) -> None:
    texts, facts = grouped(Grouping([{"a": "one"}, {"a": "two"}]), merger)
    assert sorted(text["a"] for text in texts) == ["one", "two"]
    (failed,) = events_of(facts, "merge.failed")
    assert failed.data["texts"] == 2


def test_a_prompt_holds_so_many_characters_of_edits_at_most() -> None:
    merger = Merger()
    edits = [{"a": f"seed a\n{letter * 90}"} for letter in "wxyz"]
    texts, _ = grouped(Grouping(edits, most_characters=250), merger)
    assert texts[0]["a"].splitlines() == ["seed a", *(letter * 90 for letter in "wxyz")]
    assert len(merger.prompts) == 2


def test_groups_are_built_on_the_newest_one_under_validation() -> None:
    _, facts = grouped(
        Grouping([{"a": "one"}, {"b": "two"}, {"a": "three"}], on_head=True, delay=2.0, departs=OneByOne())
    )
    heads = [event.data["head"] for event in events_of(facts, "group.departed")]
    built = [
        event.data["candidate"] for event in events_of(facts, "candidate.proposed") if event.data["operator"] == "group"
    ]
    assert len(heads) == 3
    assert heads == ["c0", *built[:2]]


def test_what_was_built_on_a_group_that_failed_is_rebased() -> None:
    algorithm = Grouping([{"a": "one"}, {"b": "two"}], passes=[False], on_head=True, delay=11.0, departs=OneByOne())
    texts, facts = grouped(algorithm)
    heads = [event.data["head"] for event in events_of(facts, "group.departed")]
    assert heads == ["c0", "c0"]
    assert texts == [{"a": "seed a", "b": "two"}]


def lines(*added: str) -> list[Mapping[str, str]]:
    """Edits that each add a line to the seed's text."""
    return [{"a": f"{SEED['a']}\n{line}"} for line in added]


def ways(facts: list[Fact]) -> list[object]:
    return [event.data["way"] for event in events_of(facts, "group.departed")]


def test_edits_that_a_merge_takes_nothing_of_are_made_again_line_by_line() -> None:
    texts, _ = grouped(Grouping(lines("one", "two")), TakesNothingOver())
    assert texts == [{"a": "seed a\ntwo\none", "b": "seed b"}]


class SaysSomethingElse(Merger):
    """Answers with a text that has nothing of the edits."""

    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        return ChatReply(fence("Think step by step."), Usage(100, 10))


def test_a_merge_without_anything_of_the_edits_is_none() -> None:
    texts, facts = grouped(Grouping(lines("one", "two")), SaysSomethingElse())
    assert texts == [{"a": "seed a\ntwo\none", "b": "seed b"}]
    (failed,) = events_of(facts, "merge.failed")
    assert "nothing of what the edits added" in str(failed.data["reason"])


def test_of_edits_to_the_same_text_one_is_taken_and_no_model_asked() -> None:
    merger = Merger()
    algorithm = Grouping([{"a": "one"}, {"a": "one"}])
    texts, facts = grouped(algorithm, merger)
    assert texts == [{"a": "one", "b": "seed b"}]
    assert not merger.prompts
    reasons = [str(event.data["reason"]) for event in events_of(facts, "candidate.rejected")]
    assert sorted(reasons) == ["another edit was there first", "merged into c1-2"]
    assert algorithm.head.success["model"] < 1.0  # nothing was merged


def test_without_a_model_what_can_not_be_made_again_by_lines_goes_on_as_it_is() -> None:
    merger = Merger()
    edits = [*lines("one", "two"), {"a": "something new"}]
    texts, _ = grouped(Grouping(edits, ways={"lines": 1.0}, asks=False), merger)
    assert sorted(text["a"] for text in texts) == ["seed a\ntwo\none", "something new"]
    assert not merger.prompts


def test_line_by_line_no_model_is_asked_but_for_new_texts() -> None:
    merger = Merger()
    texts, facts = grouped(Grouping([*lines("one", "two"), {"a": "new"}], ways={"lines": 1.0}), merger)
    assert texts == [{"a": "seed a\ntwo\none\nnew", "b": "seed b"}]
    assert len(merger.prompts) == 1
    assert events_of(facts, "candidate.proposed")[-1].data["operator"] == "group_lines"
    merger = Merger()
    grouped(Grouping(lines("one", "two"), ways={"lines": 1.0}), merger)
    assert not merger.prompts


def test_a_way_that_fails_gives_way_to_another_until_that_fails_too() -> None:
    algorithm = Grouping(
        lines("one", "two", "three", "four"),
        passes=[False, False, True, True],
        delay=15.0,
        departs=OneByOne(),
        ways={"model": 1.0, "lines": 0.9, "each": 0.8},
    )
    texts, facts = grouped(algorithm)
    assert ways(facts) == ["model", "lines", "each", "each"]
    assert texts == [{"a": "seed a\nthree", "b": "seed b"}, {"a": "seed a\nfour", "b": "seed b"}]


def test_a_group_that_is_released_early_is_judged_by_its_whole_validation() -> None:
    best = [Candidate("c0", fe.Artifact(SEED), (), "seed", 0)]
    head = Head(lambda: best[0], {"model": 0.5})
    for name in ("c1", "c2"):
        group = Candidate(name, fe.Artifact(SEED), ("c0",), "group", 0)
        head.apply_event(Event.of(0, 0.0, CandidateProposed.of(group, ItemId("1"))))
        head.apply(fe.Update(1, (Add(group, "speculative"),), "item", 0.0))
        assert (head.id(), head.success["model"]) == (name, 0.5)
        confirmed = name == "c1"
        best = [group] if confirmed else best
        head.apply(fe.Update(2, (Move(name, "confirmed" if confirmed else "revoked"),), "item", 0.0))
        assert (head.success["model"] > 0.5) == confirmed
        assert head.id() == "c1"
        head.success["model"] = 0.5


def test_single_edits_are_validated_each_as_it_is() -> None:
    texts, facts = grouped(Grouping(lines("one", "two"), ways={"each": 1.0}))
    assert texts == [{"a": "seed a\none", "b": "seed b"}, {"a": "seed a\ntwo", "b": "seed b"}]
    assert not events_of(facts, "candidate.rejected")
