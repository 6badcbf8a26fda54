"""Stopping rules: at which progress each ends a run, and a GEPA whose flows come to nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.budget import Cost
from flowevolve.core.model import Message
from flowevolve.core.policies import Progress
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
from flowevolve.policies.stopping import FileExists, NoImprovement, Unevaluated, Unproductive
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run


class Barren:
    """Gives reflection nothing to work on: all is solved already."""

    name = "barren"

    def __init__(self) -> None:
        train = [Example(str(number), {}) for number in range(6)]
        self.data = Dataset(train, [Example(f"v{each.id}", {}) for each in train])

    def seed(self) -> Artifact:
        return Artifact({"system": "be good"})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        reply = await llm([Message("system", artifact["system"]), Message("user", "question")])
        calls = (Call("system", {"question": "question"}, reply),)
        return Rollout(example.id, reply, Score(1.0, "feedback", passed=True), calls)


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_a_run_whose_flows_propose_nothing_ends(mode: str) -> None:
    config = parse_config(
        {
            "clock": "virtual",
            "algorithm": {"mode": mode, "max_in_flight": 4},
            "budget": {"proposals": 5},
            "stopping": {"no_improvement": 3, "unproductive": 20},
        },
        "test",
    )
    reasons: Counter[str] = Counter()

    async def go() -> Result:
        watchers = Watchers(
            events=[lambda event: reasons.update([str(event.data["reason"])] if event.kind == "item.done" else [])]
        )
        return await run(config, task=Barren(), watchers=watchers)

    result = clock.run(go, clock="virtual")
    assert result.report.stop_reason == "unproductive"
    assert result.report.spent.proposals == 0
    assert 20 <= reasons["perfect minibatch"] < 25


class AlmostBarren(Barren):
    """A task with a training example that is not perfect, and that its seed solves in validation."""

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        rollout = await super().rollout(artifact, example, llm)
        worse = Score(0.5, "feedback", passed=False)
        return rollout if example in self.data.val or example.id != "0" else replace(rollout, score=worse)


def test_a_run_whose_seed_is_perfect_in_validation_ends_after_a_few_minibatches_only_if_all_are() -> None:
    def ran(task: Barren) -> Result:
        config = parse_config({"clock": "virtual", "budget": {"proposals": 5}}, "test")
        return clock.run(partial(run, config, task=task), clock="virtual")

    barren, other = ran(Barren()), ran(AlmostBarren())
    assert barren.report.stop_reason == "unproductive"
    assert barren.report.spent.rollouts < 200
    assert other.report.stop_reason == "proposals"


def progress(proposals: int = 0, *, ran: Cost | None = None, version: int = 0, changes: int = 0) -> Progress:
    return Progress(0.0, Cost(proposals=proposals) + (ran or Cost()), version, proposals, None, changes)


def test_a_row_of_proposals_without_gain_ends_a_run() -> None:
    assert [NoImprovement(3).reason(progress(many)) for many in (2, 3, 4)] == [None, "no_improvement", "no_improvement"]


@pytest.mark.parametrize("ran", [Cost(rollouts=1), Cost(evaluations=1), Cost(rollouts=1, evaluations=1)])
def test_proposals_between_which_nothing_is_run_end_a_run(ran: Cost) -> None:
    rule = Unevaluated(3)
    assert [rule.reason(progress(many)) for many in range(4)] == [None, None, None, "unevaluated"]
    assert rule.reason(progress(4, ran=ran)) is None
    assert [rule.reason(progress(many, ran=ran)) for many in (6, 7)] == [None, "unevaluated"]


@pytest.mark.parametrize(("proposals", "version"), [(1, 0), (0, 1)])
def test_flows_of_which_nothing_comes_end_a_run(proposals: int, version: int) -> None:
    rule = Unproductive(3)
    assert [rule.reason(progress(changes=many)) for many in range(5)] == [None] * 4 + ["unproductive"]
    assert rule.reason(progress(proposals, version=version, changes=5)) is None
    later = [rule.reason(progress(proposals, version=version, changes=many)) for many in (8, 9)]
    assert later == [None, "unproductive"]


def test_a_file_ends_a_run(tmp_path: Path) -> None:
    rule = FileExists(tmp_path / "stop")
    assert rule.reason(progress()) is None
    rule.path.touch()
    assert rule.reason(progress()) == "stop_file"
