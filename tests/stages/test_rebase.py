"""Edits that are validated one at a time: what becomes of those that another one has overtaken."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence

import flowevolve as fe
from flowevolve._util.json_types import JSON
from flowevolve.core.pool import Add
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Score
from flowevolve.stages import Rollouts, committing
from flowevolve.stages.group_commit import Head
from flowevolve.stages.payloads import Proposed
from flowevolve.stages.rebase import Rebase
from tests.support.interruption import Fact, events_of, evolve

SEED = "one\ntwo"


class Given:
    """A task on whose one example everything scores the same."""

    name = "given"
    data = Dataset([Example("t", {})], [Example("v", {})])

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": SEED})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        return Rollout(example.id, "", Score(0.5, "", passed=False))


class Overtaking(fe.Algorithm):
    """All ``edits`` are made of the seed, side by side; each has its text and its score on the minibatch. Whatever is
    validated becomes the best.
    """

    name = "overtaking"

    def __init__(self, edits: Sequence[tuple[str, float]]) -> None:
        super().__init__(Given(), fe.Settings(), fe.Tuning())
        self.edits = edits
        self._best: fe.Candidate | None = None
        self.head = Head(self.best, {"each": 1.0}, optimistic=False)
        self.archives = (self, self.head)

    def best(self) -> fe.Candidate | None:
        return self._best

    def apply(self, update: fe.Update) -> None:
        (self._best,) = update.added()

    def graph(self) -> fe.Graph:
        rebase = Rebase(self.best, self.head.was_best, _evaluate, Rollouts(self.task), price=1)
        stages = (
            fe.Stage("start", self._start, ("evaluate",)),
            fe.Stage("evaluate", rebase, ("update",)),
            committing("update", _update),
        )
        return fe.Graph(stages, entry="start")

    async def init(self, context: fe.UpdateContext) -> AsyncGenerator[fe.Emit]:
        seed = context.propose(self.task.seed(), parents=[], operator="seed")
        yield fe.Emit(Proposed(seed, (), ()), to="update")

    async def _start(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        for text, score in self.edits if item.flow == 1 else ():
            seed = context.pool["c0"]
            candidate = context.propose(
                fe.Artifact({"prompt": text}), parents=[seed], operator="reflect", born=item.version
            )
            yield fe.Emit(Proposed(candidate, ("t",), (0.0,), scores=(score,)))
        raise fe.Exhausted


async def _evaluate(item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
    yield fe.Emit(item.payload)


async def _update(item: fe.Item[object], context: fe.UpdateContext) -> None:
    context.commit([Add(item.expect(Proposed).candidate.scored({"v": float(context.pool.version)}))])


def validated(*edits: tuple[str, float]) -> tuple[list[str], list[Mapping[str, JSON]], list[Fact], int]:
    """The texts that were validated, in their order, what was discarded, all facts, and the rollouts."""
    report, facts = evolve(Overtaking(edits))
    texts = [each.artifact["prompt"] for update in report.pool.updates_between(0) for each in update.added()]
    gone = [event.data for event in events_of(facts, "item.done") if event.data["outcome"] == "discarded"]
    return texts[1:], gone, facts, report.spent.rollouts


def test_an_edit_of_lines_is_made_again_on_what_has_overtaken_it() -> None:
    texts, gone, _, rollouts = validated((f"{SEED}\nthree", 1.0), (f"zero\n{SEED}", 1.0))
    assert texts == [f"{SEED}\nthree", f"zero\n{SEED}\nthree"]
    assert not gone
    assert not rollouts


def test_a_new_text_has_to_beat_the_best_candidate_on_its_minibatch() -> None:
    texts, gone, _, rollouts = validated((f"{SEED}\nthree", 1.0), ("new", 0.5), ("newer", 0.6))
    assert texts == [f"{SEED}\nthree", "newer"]
    assert [each["reason"] for each in gone] == ["another edit was there first"]
    assert rollouts == 2


def test_an_edit_that_came_to_the_same_texts_is_not_validated_again() -> None:
    texts, gone, facts, rollouts = validated(("new", 1.0), ("new", 1.0))
    assert texts == ["new"]
    assert len(gone) == 1
    assert [event.data.get("is_new", True) for event in events_of(facts, "candidate.rebased")] == [True, False]
    assert not rollouts
