"""Reflecting on several components at once, of which some have nothing to go by or get no reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from bench._lib.served import served_by
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.event_kinds import CandidateProposed
from flowevolve.core.events import Event
from flowevolve.core.model import ChatReply, ChatRequest, RejectedError
from flowevolve.core.task import Call, ChatModel, Dataset, Example, Rollout
from flowevolve.runner.clients import OpenRoles
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.run import Watchers, run_plan
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld
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


BOTH = [{"name": "gepa"}, {"name": "combee", "batch": 2}]


def proposals(algorithm: dict[str, object], opens_roles: OpenRoles | None = None) -> Sequence[Mapping[str, str]]:
    """The components of the seed, and of each candidate that a run proposed which writes all of them."""
    found: list[Mapping[str, str]] = []

    def note(event: Event) -> None:
        if isinstance(event.body, CandidateProposed):
            found.append(event.body.components)
        assert "no trace" not in str(event.data.get("reason"))

    config = parse_config(
        {
            "clock": "virtual",
            "algorithm": {"max_in_flight": 4, "minibatch": 1, "component_selector": "all", **algorithm},
            "budget": {"proposals": 10},
        },
        "test",
    )
    plan = make_plan(config, ProvidedObjects(Parts()), opens_roles=opens_roles)
    clock.run(lambda: run_plan(plan, None, Watchers(events=[note]), None), clock="virtual")
    return found


@pytest.mark.parametrize("algorithm", BOTH)
def test_a_component_without_a_trace_keeps_its_text_and_the_others_are_rewritten(algorithm: dict[str, object]) -> None:
    seed, *proposed = proposals(algorithm)
    assert len(proposed) >= 10
    assert all(components["c"] == seed["c"] for components in proposed)
    assert {components["b"] == seed["b"] for components in proposed} == {True, False}


class Refusing(SimBackend):
    """Answers no reflection on the second component."""

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        if 'the instruction named "b"' in request.messages[-1].content:
            raise RejectedError("the prompt is too long")
        return await super().chat(request, timeout=timeout)


@pytest.mark.parametrize("algorithm", BOTH)
def test_a_call_that_fails_for_good_does_not_lose_what_was_written_of_other_components(
    algorithm: dict[str, object],
) -> None:
    server = Refusing(RulesWorld(PRESETS["normal"]), PROFILES["instant"])
    seed, *proposed = proposals(algorithm, partial(served_by, server))
    assert len(proposed) >= 10
    assert all(components["b"] == seed["b"] for components in proposed)
    assert any(components["a"] != seed["a"] for components in proposed)
