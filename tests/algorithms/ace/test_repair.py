"""What becomes of an edit of the playbook that others were faster than: every way that reconcile can go."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import pytest

import flowevolve as fe
from flowevolve.algorithms.ace.payloads import Edit
from flowevolve.algorithms.ace.playbook import Bullet, Operation, Playbook, edit_note, load_note
from flowevolve.algorithms.ace.playbook_reading import Reader
from flowevolve.algorithms.ace.repair import Reconcile
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.graph import NO_EMISSIONS
from flowevolve.core.item import Stale
from flowevolve.core.item_ids import ItemId
from flowevolve.core.model import ChatReply, ChatRequest, EmbedReply, EmbedRequest, Message, RejectedError, Usage
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Score
from flowevolve.experience.embedders import RoleEmbedder
from flowevolve.llm.client.model import Model
from flowevolve.policies.similarity import Likeness
from flowevolve.prompts.playbook import COMPARE_TITLE
from flowevolve.stages import Rollouts, tokens_by_agent
from tests.support.interruption import Fact, asked, events_of, evolve

BEFORE = [Bullet("str-00001", "strategies", "Old one."), Bullet("str-00002", "strategies", "Old two.")]
NOTED = Operation("ADD", "strategies", "Noted.")
NOTED_ID = "str-00003"
VECTORS = {
    "Noted.": (1.0, 0.0),
    "Says the same.": (0.99, 0.14),
    "Is about it.": (0.75, 0.66),
    "Is about it, too.": (0.74, 0.67),
    "Is something else.": (0.0, 1.0),
}
Right = Callable[[str], bool]


@dataclass
class Judge:
    """A backend with a word on every comparison, and right answers where the playbook it is shown is as it likes.

    ``vectors`` None: it makes no embeddings; ``says`` None: it compares nothing.
    """

    says: str | None = ""
    right: Right = lambda _: False
    vectors: Mapping[str, tuple[float, ...]] | None = field(default_factory=lambda: VECTORS)
    backend = "judge"

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        await anyio.sleep(1)
        if not request.messages[0].content.startswith(COMPARE_TITLE):
            return ChatReply("right" if self.right(request.messages[0].content) else "wrong", Usage(9, 1))
        if self.says is None:
            raise RejectedError("too long")
        return ChatReply(self.says, Usage(9, 1))

    async def embed(self, request: EmbedRequest, *, timeout: float) -> EmbedReply:
        await anyio.sleep(1)
        if self.vectors is None:
            raise RejectedError("no such thing")
        return EmbedReply(tuple(self.vectors[text] for text in request.texts))

    async def models(self) -> tuple[str, ...]:
        return ("judge",)

    async def aclose(self) -> None:
        pass


class Asking:
    """A task with one question, asked with the playbook behind the prompt."""

    name = "asking"
    data = Dataset([Example("t0", {}), Example("t1", {})], [])

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": "Answer."})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        reply = await llm([Message("system", artifact["prompt"]), Message("user", "?")])
        return Rollout(example.id, reply, Score(float(reply == "right"), "", reply == "right"))


class Late(fe.Algorithm):
    """Takes ``edit``, made from the playbook ``BEFORE``, to reconcile when ``meanwhile`` was done; keeps what comes."""

    name = "late"
    roles = ("task", "reflection", "embedding")

    def __init__(self, edit: Edit, meanwhile: Sequence[Operation]) -> None:
        self.edit = edit
        self.meanwhile = meanwhile
        self.playbook = Playbook()
        self.archives = (self.playbook,)
        self.got: list[fe.Item[object]] = []

    def graph(self) -> fe.Graph:
        task = Asking()
        reader = Reader(self.playbook, task.seed(), 1000)
        reconcile = Reconcile(Rollouts(task), reader, Likeness(), RoleEmbedder())
        return fe.Graph(
            (
                fe.Stage("select", self.select, ("reconcile",)),
                fe.Stage("reconcile", reconcile, ("update",)),
                fe.CommittingStage("update", self.take),
            ),
            entry="select",
        )

    async def init(self, context: fe.UpdateContext) -> AsyncGenerator[fe.Emit]:
        made_from = context.commit([load_note(BEFORE)]).version
        context.commit([edit_note(self.meanwhile, {"str-00001": (1, 0)})])
        item = fe.Item(ItemId("7.0"), 7, self.edit, made_from, (), 0.0)
        yield fe.Emit(Stale(item, "update"), to="reconcile")

    async def select(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        for emission in NO_EMISSIONS:
            yield emission
        raise fe.Exhausted

    async def take(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        self.got.append(item)
        for emission in NO_EMISSIONS:
            yield emission

    def best(self) -> None:
        return None


@dataclass
class Came:
    """The edit that came back, the version it goes by, and what was logged and called."""

    edit: Edit
    version: int
    facts: list[Fact]

    @property
    def added(self) -> list[str]:
        return [each.text for each in self.edit.operations if each.verb == "ADD"]

    @property
    def calls(self) -> list[CallRecord]:
        return [fact for fact in self.facts if isinstance(fact, CallRecord)]

    @property
    def answered(self) -> list[CallRecord]:
        return [call for call in self.calls if call.role == "task"]


def reconciled(edit: Edit, meanwhile: Sequence[Operation] = (NOTED,), judge: Judge | None = None) -> Came:
    late = Late(edit, meanwhile)
    role = Model(judge or Judge(), "judge")
    report, facts = evolve(late, roles=lambda: dict.fromkeys(late.roles, role))
    assert report.error is None
    (item,) = late.got
    return Came(item.expect(Edit), item.version, facts)


def add(*texts: str) -> Edit:
    return Edit(tuple(Operation("ADD", "mistakes", text) for text in texts), sources=("t0",))


def on(*names: str) -> dict[str, str]:
    """Those of ``BEFORE`` as they were seen."""
    return {bullet.id: bullet.digest for bullet in BEFORE if bullet.id in names}


def test_where_nothing_was_noted_meanwhile_nobody_is_asked() -> None:
    came = reconciled(add("Is about it."), meanwhile=())
    assert came.added == ["Is about it."]
    assert came.calls == []
    assert came.version == 2


@pytest.mark.parametrize(
    ("text", "says", "added", "credited", "compared"),
    [
        ("Is something else.", "", True, False, False),
        ("Says the same.", "", False, True, False),
        ("Is about it.", "1: same", False, True, True),
        ("Is about it.", "1: new", True, False, True),
    ],
)
def test_an_addition_is_credited_where_it_is_said_already(
    text: str, says: str, added: bool, credited: bool, compared: bool
) -> None:
    came = reconciled(add(text), judge=Judge(says))
    assert came.added == ([text] if added else [])
    assert came.edit.counts == ({NOTED_ID: (1, 0)} if credited else {})
    assert [call.role for call in came.calls] == ["embedding", *(["reflection"] if compared else [])]


def test_each_of_several_additions_goes_its_own_way() -> None:
    """And what one call says of those in between is said of the right ones."""
    edit = add("Is something else.", "Is about it.", "Says the same.", "Is about it, too.")
    came = reconciled(edit, judge=Judge("1: same\n2: new"))
    assert came.added == ["Is something else.", "Is about it, too."]
    assert came.edit.counts == {NOTED_ID: (2, 0)}
    (compared,) = [call for call in came.calls if call.role == "reflection"]
    assert "1. Is about it.\n2. Is about it, too." in asked(compared)[0].content


def test_the_tokens_of_a_comparison_are_counted_for_its_agent() -> None:
    came = reconciled(add("Is about it."), judge=Judge("1: new"))
    assert tokens_by_agent(fact for fact in came.facts if isinstance(fact, Event)) == {"compare": Usage(9, 1)}


@pytest.mark.parametrize("says", ["1: conflict", "I can't tell."])
@pytest.mark.parametrize(
    ("right", "stands"),
    [
        (lambda shown: "Is about it." in shown, True),
        (lambda shown: "Is about it." not in shown, False),
        (lambda _: True, False),
        (lambda _: False, False),
    ],
    ids=["better", "worse", "both right", "both wrong"],
)
def test_what_contradicts_stands_if_questions_are_answered_better_with_it(
    says: str, right: Right, stands: bool
) -> None:
    came = reconciled(add("Is about it."), judge=Judge(says, right))
    assert came.added == (["Is about it."] if stands else [])
    (event,) = events_of(came.facts, "edit.reconciled")
    assert (event.data["contested"], event.data["accepted"]) == (1, stands)
    assert sorted(call.scope.item.partition("/")[2] for call in came.answered) == ["t0~with", "t0~without"]


def test_it_is_tested_on_all_that_it_was_learnt_from() -> None:
    edit = Edit(add("Is about it.").operations, sources=("t0", "t1"))
    came = reconciled(edit, judge=Judge("1: conflict"))
    assert {call.scope.item.partition("/")[2] for call in came.answered} == {
        f"{name}~{attempt}" for name in ("t0", "t1") for attempt in ("with", "without")
    }


def test_what_contradicts_and_was_learnt_from_nothing_falls() -> None:
    """A merge that refines has no examples to be tested on."""
    came = reconciled(Edit(add("Is about it.").operations), judge=Judge("1: conflict", lambda _: True))
    assert came.added == []
    assert came.answered == []


@pytest.mark.parametrize("judge", [Judge(vectors=None), Judge(says=None)], ids=["no embeddings", "no comparison"])
def test_without_a_judge_additions_are_let_through(judge: Judge) -> None:
    came = reconciled(add("Is about it."), judge=judge)
    assert came.added == ["Is about it."]
    assert came.edit.counts == {}
    assert events_of(came.facts, "reconcile.failed")


UPDATE = Operation("UPDATE", "", "Mine.", on("str-00001"))
DELETE = Operation("DELETE", "", "", on("str-00001"))
MERGE = Operation("MERGE", "", "Both.", on("str-00001", "str-00002"))
OTHERS = Operation("UPDATE", "", "Theirs.", on("str-00001"))
GONE = Operation("DELETE", "", "", on("str-00001"))


@pytest.mark.parametrize("operation", [UPDATE, DELETE, MERGE], ids=lambda each: each.verb)
def test_what_is_about_bullets_that_nobody_changed_is_kept(operation: Operation) -> None:
    """Their counters are no change."""
    came = reconciled(Edit((operation,), sources=("t0",)))
    assert came.edit.operations == (operation,)
    assert came.calls == []


@pytest.mark.parametrize("better", [True, False])
@pytest.mark.parametrize(
    ("operation", "with_it"),
    [(UPDATE, lambda shown: "Mine." in shown), (DELETE, lambda shown: "str-00001" not in shown)],
    ids=["UPDATE", "DELETE"],
)
def test_what_is_about_a_bullet_that_has_changed_is_tested(operation: Operation, with_it: Right, better: bool) -> None:
    judge = Judge(right=lambda shown: with_it(shown) == better)
    came = reconciled(Edit((operation,), sources=("t0",)), meanwhile=(OTHERS,), judge=judge)
    if not better:
        assert came.edit.operations == ()
        return
    (stands,) = came.edit.operations
    assert stands.verb == operation.verb
    assert stands.seen == {"str-00001": Bullet("str-00001", "strategies", "Theirs.").digest}


@pytest.mark.parametrize(
    ("operation", "meanwhile"),
    [(UPDATE, GONE), (DELETE, GONE), (MERGE, GONE), (MERGE, OTHERS)],
    ids=lambda each: each.verb,
)
def test_what_is_about_bullets_that_are_gone_is_dropped(operation: Operation, meanwhile: Operation) -> None:
    """And a merge of one that has another text."""
    came = reconciled(Edit((operation,), sources=("t0",)), meanwhile=(meanwhile,), judge=Judge(right=lambda _: True))
    assert came.edit.operations == ()
    (event,) = events_of(came.facts, "edit.reconciled")
    assert event.data["dropped"] == 1


def test_the_rest_of_an_edit_stays_as_it_is() -> None:
    edit = Edit(add("Is something else.").operations, ("t1",), on("str-00002"), validate=True, last=True)
    assert reconciled(edit).edit == edit


def test_credit_of_an_earlier_repair_is_added_to() -> None:
    edit = Edit(add("Says the same.").operations, ("t0",), counts={NOTED_ID: (1, 2), "str-00002": (1, 0)})
    assert reconciled(edit).edit.counts == {NOTED_ID: (2, 2), "str-00002": (1, 0)}
