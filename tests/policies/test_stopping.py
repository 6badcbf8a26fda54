"""Stopping rules, on a GEPA whose flows come to nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.model import Message
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout, Score
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
