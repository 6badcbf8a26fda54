"""Combee on the simulated server: rounds, merges, both forms, the controller, and going on after an interruption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast

import pytest

import flowevolve as fe
from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.algorithms.combee import Combee, CombeeConfig
from flowevolve.config.run import parse_config
from flowevolve.core.algorithm import Tuning, WorkersWanted
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.item_ids import flow_of
from flowevolve.core.model import ChatReply, ChatRequest
from flowevolve.llm.client.model import Model
from flowevolve.llm.client.role import Role
from flowevolve.prompts.reading.fences import labelled_blocks
from flowevolve.prompts.reading.instructions import read_instruction
from flowevolve.prompts.reflection import MERGE_TITLE, VERSIONS_HEADING, WRITE_HEADING
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.sim.backend import SimBackend
from flowevolve.sim.profiles import PROFILES
from flowevolve.sim.worlds.rules.world import RulesWorld
from flowevolve.tasks.house_style import house_style_task
from tests.support.depth import LONG, cuts
from tests.support.interruption import Fact, events_of, evolve

TASK = house_style_task(make_rows(rules=10, per_example=3, overlap=0.3, rows=60, seed=1))
Mode = Literal["stream", "sync"]


def ran(mode: Mode = "sync", *, width: int = 6, batch: int = 6, **more: object) -> tuple[Result, list[Fact]]:
    facts: list[Fact] = []
    bound = {"width" if mode == "sync" else "max_in_flight": width}
    budget = more.pop("budget", {"proposals": 8})
    seed = more.pop("seed", 0)
    config = parse_config(
        {
            "clock": "virtual",
            "seed": seed,
            "algorithm": {"name": "combee", "mode": mode, "batch": batch, **bound, **more},
            "budget": budget,
        },
        "test",
    )

    async def go() -> Result:
        return await run(config, task=TASK, watchers=Watchers(events=(facts.append,), calls=(facts.append,)))

    return clock.run(go, clock="virtual"), facts


def aggregated(facts: Sequence[Fact]) -> list[Event]:
    return [event for event in events_of(facts, "candidate.proposed") if event.data["operator"] == "aggregate"]


def merges(facts: Sequence[Fact]) -> list[CallRecord]:
    return [fact for fact in facts if isinstance(fact, CallRecord) and asked_of(fact).startswith(MERGE_TITLE)]


def asked_of(call: CallRecord) -> str:
    assert isinstance(call.request, ChatRequest)
    return call.request.messages[-1].content


@pytest.mark.parametrize("mode", ["sync", "stream"])
def test_reflections_on_one_parent_make_one_proposal(mode: Mode) -> None:
    result, facts = ran(mode, width=12 if mode == "stream" else 6)
    made = aggregated(facts)
    assert result.report.spent.proposals >= len(made) > 0
    parents = {
        str(event.data["item"]).partition(".")[0]: event.data["parents"] for event in events_of(facts, "gepa.selected")
    }
    for gathered in events_of(facts, "items.gathered"):
        items = cast("list[str]", gathered.data["items"])
        assert len({str(parents[name.partition(".")[0]]) for name in items}) == 1
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score


def test_in_lockstep_a_step_is_a_round_on_minibatches_of_their_own() -> None:
    _, facts = ran("sync")
    chosen = [event.data for event in events_of(facts, "gepa.selected")]
    rounds = [chosen[start : start + 6] for start in range(0, len(chosen), 6)]
    for each in rounds:
        assert len({str(data["parents"]) for data in each}) == 1
        assert [data["left"] for data in each] == [5, 4, 3, 2, 1, 0][: len(each)]
    first = [name for data in rounds[0] for name in cast("list[str]", data["batch"])]
    assert len(set(first)) == len(first)
    reflections = [cast("dict[str, int]", event.data["attributes"])["reflections"] for event in aggregated(facts)]
    assert max(reflections) == 6


def test_a_round_ends_when_its_parent_is_vetoed() -> None:
    """Its flows are begun two at a time, so most of a round's are still to come when its parent is vetoed."""
    config = parse_config(
        {
            "clock": "virtual",
            "preset": "plain",
            "algorithm": {"name": "combee", "batch": 2, "max_in_flight": 2},
            "budget": {"proposals": 12},
        },
        "test",
    )
    chosen: list[tuple[int, str]] = []
    banned: dict[str, int] = {}

    async def go() -> None:
        async with fe.open_run(config, task=TASK) as engine:
            async for event in engine.events():
                if event.kind == "flow.open":
                    opened = cast(int, event.data["flow"])
                elif event.kind == "gepa.selected":
                    (parent,) = cast("list[str]", event.data["parents"])
                    flow = flow_of(str(event.data["item"]))
                    chosen.append((flow, parent))
                    if event.data["left"] and parent != "c0" and not banned:
                        await engine.act(fe.Veto(parent), "ada")
                        banned[parent] = opened

    clock.run(go, clock="virtual")
    assert banned
    assert not [(flow, parent) for flow, parent in chosen if flow > banned.get(parent, flow)]


def versions_in(prompt: str) -> list[str]:
    """The texts that a merge was asked for."""
    shown = prompt.partition(VERSIONS_HEADING)[2].partition(WRITE_HEADING)[0]
    return [text for _, text in labelled_blocks(shown)]


@pytest.mark.parametrize(("mode", "width"), [("sync", 24), ("stream", 48)])
def test_no_merge_gets_more_than_the_fan_in(mode: Mode, width: int) -> None:
    _, facts = ran(mode, width=width, batch=24, fan_in=4, budget={"proposals": 3})
    assert merges(facts)
    for call in merges(facts):
        versions = versions_in(asked_of(call))
        assert 2 <= len(versions) <= 4


def test_a_proposal_is_screened_on_all_its_minibatches_each_example_once() -> None:
    _, facts = ran("sync", width=20, batch=20, budget={"proposals": 3})
    reflections = {event.data["candidate"]: event.data["attributes"] for event in aggregated(facts)}
    screened = [event for event in events_of(facts, "candidate.screened") if event.data["candidate"] in reflections]
    assert screened
    for event in screened:
        scores = cast("list[float]", event.data["scores"])
        assert 3 < len(scores) <= len(TASK.data.train)
    keys = Counter(
        (fact.scope.stage, fact.scope.item, fact.scope.index) for fact in facts if isinstance(fact, CallRecord)
    )
    assert max(keys.values()) == 1


def test_the_controller_profiles_steps_and_settles() -> None:
    _, facts = ran("sync", width=16, batch=16, batch_size="dynamic", budget={"minutes": 60 if LONG else 40})
    steps = [cast(int, event.data["flows"]) for event in events_of(facts, "step.ended")]
    assert steps[:6] == [2, 2, 2, 4, 4, 4]
    assert len(set(steps[20:-1])) == 1
    asked = [cast(int, event.data["width"]) for event in events_of(facts, "width.changed")]
    assert asked[:2] == [2, 4]


def test_inside_the_stream_the_controller_goes_by_the_merges() -> None:
    """One call takes hardly longer with eight reflections than with two, so it settles at eight, unless the few delays
    that it profiled happened to say otherwise.
    """
    seeds = range(4 if LONG else 2)
    settled = [_settled(seed) for seed in seeds]
    assert sorted(settled)[1:] == [8] * (len(seeds) - 1)


def _settled(seed: int) -> int:
    """The largest batch of the second half of a run."""
    budget = {"minutes": 30}
    _, facts = ran("stream", width=16, batch=8, batch_size="dynamic", budget=budget, seed=seed)
    gathered = [len(cast("list[str]", event.data["items"])) for event in events_of(facts, "items.gathered")]
    assert max(gathered[:3]) == 2
    assert 8 in gathered[: 2 * len(gathered) // 3]
    assert not events_of(facts, "width.changed")
    return max(gathered[len(gathered) // 2 :])


def test_it_may_merge_lineages_as_gepa_does() -> None:
    result, facts = ran("sync", merge=True, budget={"proposals": 20})
    assert result.report.error is None
    assert any(event.data["looked_for_merge"] for event in events_of(facts, "gepa.selected"))


def test_fewer_flows_than_a_batch_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"algorithm\.width is 1, but has to be at least 6, as stage 'aggregate' gathers 6"
    ):
        ran("sync", width=1)


def test_a_stage_of_gepa_that_it_has_not_can_be_given_no_workers() -> None:
    with pytest.raises(InputError, match=r"stages\.propose: there is no such stage that can be given workers"):
        Combee(TASK, None, Tuning({"propose": WorkersWanted(2)}))


def roles() -> Mapping[str, Role]:
    backend = SimBackend(RulesWorld(), PROFILES["instant"])
    return {name: Model(backend, "simulated") for name in ("task", "reflection")}


class NoLastMerge(SimBackend):
    """Has nothing to say of versions that are merges themselves."""

    def __init__(self) -> None:
        super().__init__(RulesWorld(), PROFILES["instant"])
        self._merged: set[str] = set()

    async def chat(self, request: ChatRequest, *, timeout: float) -> ChatReply:
        reply = await super().chat(request, timeout=timeout)
        asked = request.messages[-1].content
        if not asked.startswith(MERGE_TITLE):
            return reply
        if self._merged.issuperset(versions_in(asked)):
            return replace(reply, text="Much in common.")
        self._merged.add(read_instruction(reply.text))
        return reply


def test_a_round_whose_last_merge_fails_makes_its_proposal_of_what_was_merged_before() -> None:
    backend = NoLastMerge()
    _, facts = evolve(
        Combee(TASK, CombeeConfig(batch=6, fan_in=4)),
        roles=lambda: {name: Model(backend, "simulated") for name in ("task", "reflection")},
        mode="sync",
        max_in_flight=6,
        budget=fe.Budget(proposals=6),
    )
    failed = events_of(facts, "merge.failed")
    assert failed
    assert {event.data["merge"] for event in failed} == {"1.0"}
    assert {event.data["item"] for event in failed} <= {event.data["item"] for event in aggregated(facts)}


@pytest.mark.parametrize("batch_size", ["fixed", "dynamic"])
@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_interrupted_anywhere_every_reflection_is_merged_once(
    mode: Mode, batch_size: Literal["fixed", "dynamic"]
) -> None:
    def go_on(before: Sequence[Fact] = ()) -> list[Fact]:
        algorithm = Combee(TASK, CombeeConfig(batch=4, batch_size=batch_size))
        budget = fe.Budget(proposals=3)
        return evolve(algorithm, before, roles=roles, mode=mode, max_in_flight=4, budget=budget)[1]

    facts = go_on()
    for end in cuts(facts, max(1, len(facts) // 40)):
        whole = go_on(facts[:end])
        done = Counter(
            event.data["item"] for event in events_of(whole, "item.done") if event.data["stage"] == "aggregate"
        )
        assert done
        assert set(done.values()) == {1}
        lefts = [event.data["left"] for event in events_of(whole, "gepa.selected")]
        assert len({str(event.data["item"]) for event in events_of(whole, "gepa.selected")}) == len(lefts)
