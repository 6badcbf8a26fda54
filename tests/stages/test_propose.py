"""Reflecting on several components at once, of which some have nothing to go by or get no reply that can be read."""

from __future__ import annotations

import pytest

from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.events import Event
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.tasks.house_style import house_style_task


class Parts:
    """Two components, of which examples with an odd number use only the first, and none the third."""

    name = "parts"

    def __init__(self) -> None:
        self._whole = house_style_task()
        data = self._whole.data
        self.data = Dataset(data.train[:12], data.val[:6])
        self._odd = {example.id for example in [*self.data.train, *self.data.val][1::2]}

    def seed(self) -> Artifact:
        return Artifact({"a": "You are helpful.", "b": "Write for our company.", "c": "Never used."})

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        system = Artifact({"system_prompt": f"{artifact['a']}\n{artifact['b']}"})
        rollout = await self._whole.rollout(system, example, llm)
        (call,) = rollout.calls
        used = "a" if example.id in self._odd else "ab"
        return Rollout(
            rollout.example_id,
            rollout.output,
            rollout.score,
            tuple(Call(each, call.inputs, call.output) for each in used),
        )


@pytest.mark.parametrize("algorithm", [{"name": "gepa"}, {"name": "combee", "batch": 2}])
def test_a_component_without_a_trace_keeps_its_text_and_the_others_are_rewritten(algorithm: dict[str, object]) -> None:
    events: list[Event] = []
    config = parse_config(
        {
            "clock": "virtual",
            "algorithm": {"max_in_flight": 4, "minibatch": 1, "component_selector": "all", **algorithm},
            "budget": {"proposals": 10},
        },
        "test",
    )

    async def go() -> Result:
        return await run(config, task=Parts(), watchers=Watchers(events=[events.append]))

    result = clock.run(go, clock="virtual")
    assert result.report.spent.proposals >= 10
    assert not any("no trace" in str(event.data.get("reason")) for event in events)
    seed, *proposed = [event.data["components"] for event in events if event.kind == "candidate.proposed"]
    assert isinstance(seed, dict)
    assert proposed
    for components in proposed:
        assert isinstance(components, dict)
        assert components["c"] == seed["c"]
    assert any(components["b"] == seed["b"] for components in proposed)  # type: ignore[index,call-overload]  # a dict
    assert any(components["b"] != seed["b"] for components in proposed)  # type: ignore[index,call-overload]  # a dict
