"""GEPA with group commit: whole runs on the simulated server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import cast

import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.event_kinds import FlowLimitChanged
from flowevolve.core.events import Event
from flowevolve.core.task import Task
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.tasks.house_style import house_style_task
from tests.support.depth import LONG

GROUP: Mapping[str, object] = {"group": True, "validation": "improvement"}
SETTINGS: Mapping[str, object] = {
    "clock": "virtual",
    "algorithm": {**GROUP, "max_in_flight": 12},
    "racing": {"policy": "confidence"},
    "budget": {"minutes": 5},
}


def evolve(settings: Mapping[str, object], task: Task | None = None) -> tuple[Result, list[Event]]:
    events: list[Event] = []

    async def go() -> Result:
        return await run(parse_config(settings, "test"), task=task, watchers=Watchers(events=(events.append,)))

    return clock.run(go, clock="virtual"), events


def of(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind]


@pytest.mark.parametrize("mode", [{"max_in_flight": 12}, {"mode": "sync", "width": 8}])
@pytest.mark.parametrize("name", ["gepa", "combee"])
def test_edits_reach_the_pool_in_groups_and_none_is_too_old(name: str, mode: Mapping[str, object]) -> None:
    batch = {"batch": 4} if name == "combee" else {}
    result, events = evolve({**SETTINGS, "algorithm": {**GROUP, "name": name, **batch, **mode}})
    groups = [
        event.data["candidate"] for event in of(events, "candidate.proposed") if event.data["operator"] == "group"
    ]
    assert groups
    assert len(of(events, "group.departed")) >= len(groups)
    entered = {candidate.id for candidate in result.report.pool.snapshot().candidates()}
    assert entered - {"c0"} <= set(groups)
    assert len(entered) > 2
    assert result.best is not None
    assert result.best.score > result.report.pool["c0"].mean_score
    assert result.report.staleness.discarded == result.report.staleness.repaired == 0


def test_next_edits_start_from_a_group_that_is_still_being_validated() -> None:
    _, events = evolve(SETTINGS)
    validated: set[object] = {"c0"}
    early = 0
    groups = set[object]()
    for event in events:
        match event.kind:
            case "candidate.proposed" if event.data["operator"] == "group":
                groups.add(event.data["candidate"])
            case "candidate.validated" | "candidate.rejected":
                validated.add(event.data["candidate"])
            case "gepa.selected":
                parents = set(cast("list[str]", event.data["parents"]))
                early += bool(parents & groups - validated)
            case _:
                pass
    assert early > 5


def test_the_first_groups_are_validated_one_at_a_time_with_half_as_many_flows() -> None:
    _, events = evolve({**SETTINGS, "algorithm": GROUP})
    steps = [
        event.kind
        for event in events
        if event.kind == "group.departed" or (event.kind == "item.done" and event.data["stage"] == "evaluate")
    ]
    departed, ended = "group.departed", "item.done"
    assert steps[:5] == [ended, departed, ended, departed, ended], "the start, and then two groups one after the other"
    assert any(pair == (departed, departed) for pair in pairwise(steps[5:]))
    limits = [event.data for event in of(events, "flows.limited")]
    assert "half as many flows are open" in str(limits[0]["reason"])
    assert "in the opening" not in str(limits[-1]["reason"])


def test_if_few_rows_validate_there_are_many_flows_while_groups_are_accepted() -> None:
    task = house_style_task()
    task.data = replace(task.data, val=task.data.val[:12])
    limits: dict[str, list[FlowLimitChanged]] = {}
    for aim in ("score", "balanced"):
        _, events = evolve({**SETTINGS, "algorithm": {**GROUP, "aim": aim}}, task)
        limits[aim] = [each.body for each in events if isinstance(each.body, FlowLimitChanged)]
    assert all("recent validation" not in each.reason for each in limits["score"])
    first = limits["balanced"][0]
    assert (first.flows, "no recent validation has rejected" in first.reason) == (8, True)
    most = {aim: max(each.flows for each in changes) for aim, changes in limits.items()}
    assert most["score"] < 8 < most["balanced"]


@pytest.mark.parametrize("policy", ["full", "guarded", "reflective"])
def test_a_round_of_combees_outlives_a_parent_that_fails(policy: str) -> None:
    algorithm = {**GROUP, "name": "combee", "batch": 10, "max_in_flight": 40}
    sim = {"preset": "lossy"}
    settings = {
        **SETTINGS,
        "algorithm": algorithm,
        "sim": sim,
        "staleness": {"policy": policy},
        "budget": {"minutes": 12 if LONG else 6},
    }
    result, events = evolve(settings)
    assert result.report.error is None
    failed = {event.data["candidate"] for event in of(events, "candidate.rejected")}
    groups = {
        event.data["candidate"] for event in of(events, "candidate.proposed") if event.data["operator"] == "group"
    }
    assert failed & groups


def test_a_repair_outlives_a_parent_that_fails() -> None:
    settings = {"clock": "virtual", "preset": "flashevolve", "algorithm": {"group": True}, "budget": {"rollouts": 1500}}
    result, _ = evolve(settings)
    assert result.report.error is None
    assert result.report.staleness.repaired


def test_groups_and_merges_of_lineages_are_not_for_one_run() -> None:
    with pytest.raises(fe.InputError, match=r"algorithm.*set merge = false"):
        evolve({**SETTINGS, "algorithm": {"group": True, "merge": True}})


def test_a_wrong_balance_is_refused() -> None:
    with pytest.raises(fe.InputError, match=r"algorithm\.balance"):
        evolve({**SETTINGS, "algorithm": {"group": True, "balance": 0}})
