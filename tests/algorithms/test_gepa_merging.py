"""Merges in the stream, where several are on their way at once."""

from __future__ import annotations

import pytest

from flowevolve import clock
from flowevolve.artifact import Artifact
from flowevolve.config import parse_config
from flowevolve.events import Event
from flowevolve.result import Result
from flowevolve.run import Watchers, run
from flowevolve.tasks.base import Call, ChatModel, Dataset, Example, Rollout
from flowevolve.tasks.house_style import house_style_task


class Two:
    """The house style, its instructions in two components."""

    name = "two"

    def __init__(self) -> None:
        self._whole = house_style_task()
        data = self._whole.data
        self.data = Dataset(data.train, data.val[:10])

    def seed(self) -> Artifact:
        return Artifact({"a": "You are helpful.", "b": "Write for our company."})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        system = Artifact({"system_prompt": f"{artifact['a']}\n{artifact['b']}"})
        rollout = await self._whole.rollout(system, example, llm)
        (call,) = rollout.calls
        calls = tuple(Call(name, call.inputs, call.output) for name in artifact)
        return Rollout(rollout.example_id, rollout.output, rollout.score, calls)


def merged(events: list[Event]) -> tuple[int, int]:
    """How many flows merged, and how many of these had a candidate confirmed."""
    flows = {str(each.data["item"]).partition(".")[0] for each in events if each.data.get("ancestor") is not None}
    confirmed = [
        each
        for each in events
        if each.kind == "pool.commit"
        and str(each.data["item"]).partition(".")[0] in flows
        and any(change.get("status") == "confirmed" for change in each.data["changes"])  # type: ignore[union-attr]
    ]
    return len(flows), len(confirmed)


@pytest.mark.parametrize("staleness", ["full", "reflective"])
def test_no_more_merges_are_accepted_than_max_merges(staleness: str) -> None:
    events: list[Event] = []
    config = parse_config(
        {
            "seed": 1,
            "clock": "virtual",
            "budget": {"rollouts": 1500},
            "algorithm": {"max_in_flight": 16, "merge": True, "max_merges": 2},
            "staleness": {"policy": staleness},
        },
        "test",
    )

    async def go() -> Result:
        return await run(config, task=Two(), watchers=Watchers(events=[events.append]))

    clock.run(go, clock="virtual")
    tried, accepted = merged(events)
    assert tried >= accepted == 2
