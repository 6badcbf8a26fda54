"""Allocation policies: facts in, at most one worker more or less per stage out, and no oscillation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.core.policies import Allocation, Resize, StageLoad, Workload
from flowevolve.policies.allocation import MedianRate, Pressure


def stage(name: str, **facts: object) -> StageLoad:
    usual = StageLoad(name, "later", workers=4, least=1, most=8, busy=3.5, waiting=0.2, produced=4, gap=1.0)
    return replace(usual, **facts)  # type: ignore[arg-type]  # the fields' own types


def workload(*stages: StageLoad, open_calls: float = 95.0, limit: int = 100) -> Workload:
    return Workload(0.0, 10.0, stages, open_calls, limit)


def signs(changes: object) -> dict[str, int]:
    assert isinstance(changes, list | tuple)
    return {change.stage: change.by for change in changes}


def test_median_rate_follows_the_paper() -> None:
    seen = workload(
        stage("generate", produced=9),
        stage("propose", produced=4),
        stage("screen", produced=4),
        stage("evaluate", produced=1),
    )
    assert signs(MedianRate().decide(seen)) == {"generate": -1, "evaluate": 1}


def test_median_rate_leaves_repair_and_a_pipeline_at_rest_alone() -> None:
    assert not MedianRate().decide(workload(stage("a", produced=0), stage("b", produced=0)))
    seen = workload(stage("a", produced=4), stage("b", produced=4), stage("repair", place="repair", produced=0))
    assert not MedianRate().decide(seen)


@pytest.mark.parametrize(
    ("policy", "setting", "value"),
    [
        (MedianRate, "interval_seconds", 0.0),
        (MedianRate, "interval_seconds", -1.0),
        (Pressure, "interval_seconds", 0.0),
        (Pressure, "interval_seconds", float("nan")),
        (Pressure, "memory", 0),
        (Pressure, "patience", 0),
        (Pressure, "rest", -1),
        (Pressure, "full", 0.0),
        (Pressure, "flood", -0.5),
        (Pressure, "max_gap", float("nan")),
    ],
)
def test_settings_out_of_range_are_refused(policy: type[Allocation], setting: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"allocation\.{setting} is {value}"):
        policy(**{setting: value})


def test_a_later_stage_that_keeps_items_waiting_gets_a_worker_after_two_looks() -> None:
    policy = Pressure()
    seen = workload(stage("evaluate", busy=4.0, waiting=3.0))
    assert not policy.decide(seen)
    (change,) = policy.decide(seen)
    assert (change.stage, change.by) == ("evaluate", 1)
    assert "3.0 items wait" in change.reason


def test_the_first_stage_is_a_valve() -> None:
    def settled(seen: Workload) -> dict[str, int]:
        """What it does once it has seen this for long: one worker at a time, so the last two looks tell."""
        policy = Pressure()
        for _ in range(60):
            policy.decide(seen)
        return signs([*policy.decide(seen), *policy.decide(seen)])

    first = stage("generate", place="first")
    later = stage("evaluate")
    assert settled(workload(first, later, open_calls=20)) == {"generate": 1}
    assert settled(workload(first, open_calls=20)) == {"generate": 1}
    assert settled(workload(first, later, open_calls=110)) == {}
    assert settled(workload(first, later, open_calls=300)) == {"generate": -1}
    backlog = replace(later, waiting=5.0)
    stale = replace(later, gap=20.0)
    assert settled(workload(first, backlog, open_calls=110)) == {"generate": -1}
    assert settled(workload(first, stale, open_calls=110)) == {"generate": -1}
    assert settled(workload(first, backlog, open_calls=20)) == {}, "nothing is begun that would only wait"
    assert settled(workload(first, stale, open_calls=20)) == {"generate": 1}, "a backend is not left idle"


@given(st.lists(st.tuples(st.floats(0, 8), st.floats(0, 9), st.floats(0, 300), st.floats(0, 30)), max_size=60))
def test_pressure_never_reverses_at_once_and_never_leaves_the_bounds(
    looks: list[tuple[float, float, float, float]],
) -> None:
    policy = Pressure()
    workers = {"generate": 4, "evaluate": 4}
    last: dict[str, tuple[int, int]] = {}
    for look, (busy, waiting, calls, gap) in enumerate(looks):
        changes = policy.decide(
            workload(
                stage("generate", place="first", workers=workers["generate"]),
                stage("evaluate", workers=workers["evaluate"], busy=busy, waiting=waiting, gap=gap),
                open_calls=calls,
            )
        )
        assert len({change.stage for change in changes}) == len(changes)
        for change in changes:
            assert change.reason
            workers[change.stage] += change.by
            assert 1 <= workers[change.stage] <= 8
            before, when = last.get(change.stage, (change.by, look))
            assert before == change.by or look - when >= policy.rest
            last[change.stage] = (change.by, look)


def test_alternating_needs_change_nothing() -> None:
    policy = Pressure()
    changes: list[Resize] = []
    for look in range(40):
        busy = {"busy": 4.0, "waiting": 3.0} if look % 2 else {"busy": 1.0, "waiting": 0.0}
        changes += policy.decide(workload(stage("evaluate", **busy)))
    assert not changes
