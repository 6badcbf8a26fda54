"""Rollouts of one example after another in the same work: told apart in the log, paid for, and failing as others do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

import flowevolve as fe
from flowevolve.core.calls import CallRecord
from flowevolve.core.graph import NO_EMISSIONS
from flowevolve.core.model import ChatReply, ChatRequest, Message, RejectedError
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Score
from flowevolve.llm.client.model import Model
from flowevolve.stages import Rollouts, committing
from flowevolve.stages.rollouts import FAILURES_BEFORE_GIVING_UP
from tests.support.interruption import Echo, Fact, events_of, evolve


class Repeating:
    """A task that asks what stands in the artifact, and fails where that is ``broken``."""

    name = "repeating"
    data = Dataset([Example("t0", {})], [Example("v0", {})])

    def seed(self) -> fe.Artifact:
        return fe.Artifact({"prompt": "good"})

    async def rollout(self, artifact: fe.Artifact, example: Example, llm: ChatModel) -> Rollout:
        if artifact["prompt"] == "broken":
            raise ZeroDivisionError("no rows")
        if artifact["prompt"] == "cancels":
            raise asyncio.CancelledError
        reply = await llm([Message("user", artifact["prompt"])])
        return Rollout(example.id, reply, Score(1.0, "", passed=True))


class Trying(fe.Algorithm):
    """Runs an example once and then again, so many times, with what the artifact says."""

    name = "trying"
    roles = ("task",)

    def __init__(self, says: str, split: str, times: int, parents: tuple[str, ...] = ()) -> None:
        self.rollouts = Rollouts(Repeating())
        self.says, self.split, self.times, self.parents = says, split, times, parents
        self.got: list[Rollout] = []

    def graph(self) -> fe.Graph:
        stages = (fe.Stage("select", self.select, ("update",)), committing("update", _nothing))
        return fe.Graph(stages, entry="select")

    async def init(self, context: fe.UpdateContext) -> AsyncGenerator[fe.Emit]:
        candidate = fe.Candidate("c", fe.Artifact({"prompt": self.says}), self.parents)
        name = f"{self.split[0]}0"
        self.got += await self.rollouts.run(candidate, [name], self.split, context)
        for number in range(self.times):
            self.got.append(await self.rollouts.again(candidate, name, self.split, context, str(number)))
        for emission in NO_EMISSIONS:
            yield emission

    async def select(self, item: fe.Item[object], context: fe.StageContext) -> AsyncGenerator[fe.Emit]:
        for emission in NO_EMISSIONS:
            yield emission
        raise fe.Exhausted

    def best(self) -> None:
        return None


async def _nothing(item: fe.Item[object], context: fe.UpdateContext) -> None:
    """There is nothing to commit."""


class Refusing(Echo):
    async def chat(self, request: ChatRequest, *, timeout: float | None) -> ChatReply:
        await anyio.sleep(1)
        raise RejectedError("too long")


def tried(
    says: str = "good",
    split: str = "train",
    times: int = 2,
    backend: Echo | None = None,
    parents: tuple[str, ...] = (),
) -> tuple[Trying, fe.Cost, fe.FlowevolveError | None, list[Fact]]:
    trying = Trying(says, split, times, parents)
    role = Model(backend or Echo(), "echo")
    report, facts = evolve(trying, roles=lambda: {"task": role})
    return trying, report.spent, report.error, facts


@pytest.mark.parametrize("split", ["train", "val"])
def test_calls_of_another_try_have_a_scope_of_their_own(split: str) -> None:
    """Else a run that goes on would take the reply to one for the reply to the other."""
    trying, spent, error, facts = tried(split=split)
    assert error is None
    assert [rollout.output for rollout in trying.got] == ["GOOD"] * 3
    scopes = [fact.scope for fact in facts if isinstance(fact, CallRecord)]
    assert [scope.item.partition("/")[2] for scope in scopes] == [f"{split[0]}0", f"{split[0]}0~0", f"{split[0]}0~1"]
    assert {scope.index for scope in scopes} == {0}
    assert spent.rollouts == 3


def test_another_try_without_an_answer_scores_nothing() -> None:
    trying, spent, error, facts = tried(backend=Refusing())
    assert error is None
    assert [rollout.score.value for rollout in trying.got] == [0.0] * 3
    assert all("too long" in rollout.score.feedback for rollout in trying.got)
    assert len(events_of(facts, "rollout.failed")) == spent.rollouts == 3


def test_a_task_that_fails_each_time_ends_the_run_in_another_try_too() -> None:
    trying, _, error, _ = tried("broken", times=FAILURES_BEFORE_GIVING_UP)
    assert len(trying.got) == FAILURES_BEFORE_GIVING_UP - 1
    assert isinstance(error, fe.TaskFailedError)
    assert "no rows" in str(error)


def test_a_task_that_raises_cancelled_error_though_nobody_cancelled_it_has_failed_like_any_other() -> None:
    trying, _, error, _ = tried("cancels", times=1)
    assert error is None
    assert [rollout.score.value for rollout in trying.got] == [0.0] * 2
    assert "it raised CancelledError, but nobody has cancelled it" in trying.got[0].score.feedback


def test_a_task_that_fails_for_one_edited_candidate_alone_ends_no_run() -> None:
    """A run that goes on may begin with a candidate that breaks the task, after others that did not."""
    trying, _, error, _ = tried("broken", times=FAILURES_BEFORE_GIVING_UP, parents=("seed",))
    assert error is None
    assert len(trying.got) == FAILURES_BEFORE_GIVING_UP + 1


@pytest.mark.parametrize(
    ("wanted", "split", "said"),
    [
        (
            [Example("t0", {})],
            "train",
            r"example_ids has a Example in it; give the ids of examples, such as \[example.id",
        ),
        (["t1"], "train", "task 'repeating' has no train example with the id 't1'"),
        (["t0"], "training", "split is 'training'; give 'train' or 'val'"),
    ],
)
def test_what_it_is_asked_to_run_has_to_be_ids_of_a_split(wanted: list[Any], split: str, said: str) -> None:
    class Misusing(Trying):
        async def init(self, context: fe.UpdateContext) -> AsyncGenerator[fe.Emit]:
            await self.rollouts.run(fe.Candidate("c", fe.Artifact({"prompt": "good"})), wanted, split, context)
            for emission in NO_EMISSIONS:
                yield emission

    with pytest.raises(fe.EngineError, match=f"Rollouts: {said}"):
        evolve(Misusing("good", "train", 0))


@pytest.mark.parametrize("kind", ["item.done", "pool.commit"])
def test_a_stage_writes_no_events_of_the_engines_own(kind: str) -> None:
    class Logging(Trying):
        async def init(self, context: fe.UpdateContext) -> AsyncGenerator[fe.Emit]:
            context.log(f"mine.{kind}")
            context.log(kind, outcome="consumed")
            for emission in NO_EMISSIONS:
                yield emission

    with pytest.raises(
        fe.EngineError, match=f"a stage can't write an event of the kind '{kind}', as these are the eng"
    ):
        evolve(Logging("good", "train", 0))
