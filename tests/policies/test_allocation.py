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


@pytest.mark.parametrize(
    ("facts", "calls", "by"),
    [
        ({"waiting": 1.9}, 20, 1),
        ({"waiting": 2.0}, 20, 0),  # half of the workers of later stages
        ({}, 94, 1),
        ({}, 97, 0),
        ({}, 149, 0),
        ({}, 153, -1),
        ({"waiting": 4.0}, 110, 0),
        ({"waiting": 4.1}, 110, -1),
        ({"gap": 12.0}, 110, 0),
        ({"gap": 12.1}, 110, -1),
    ],
)
def test_where_the_valve_turns(facts: dict[str, float], calls: float, by: int) -> None:
    policy = Pressure()
    seen = workload(stage("generate", place="first"), stage("evaluate", **facts), open_calls=calls)
    for _ in range(100):
        policy.decide(seen)
    assert [change.by for _ in range(4) for change in policy.decide(seen)] == ([by, by] if by else [])


@pytest.mark.parametrize(
    ("facts", "by"),
    [
        ({"waiting": 0.5, "busy": 3.6}, 1),
        ({"waiting": 0.49, "busy": 3.6}, 0),
        ({"waiting": 0.5, "busy": 3.5}, 0),
        ({"waiting": 0.09, "busy": 1.9}, -1),
        ({"waiting": 0.1, "busy": 1.9}, 0),
        ({"waiting": 0.09, "busy": 2.0}, 0),
        ({"waiting": 0.09, "busy": 1.9, "produced": 0}, 0),
        ({"waiting": 0.5, "busy": 3.6, "most": 4}, 0),
        ({"waiting": 0.5, "busy": 3.6, "most": 5}, 1),
        ({"waiting": 0.09, "busy": 1.9, "least": 4}, 0),
        ({"waiting": 0.09, "busy": 1.9, "least": 3}, -1),
    ],
)
def test_what_a_later_stage_needs(facts: dict[str, float], by: int) -> None:
    policy = Pressure()
    made = [change.by for _ in range(24) for change in policy.decide(workload(stage("evaluate", **facts)))]
    assert made == {1: [1] * 12, 0: [], -1: [-1] * 2}[by], "idleness is believed six times as late"


def test_a_stage_rests_before_it_is_changed_the_other_way() -> None:
    policy = Pressure(rest=6, patience=1)
    busy, idle = stage("evaluate", waiting=3.0, busy=4.0), stage("evaluate", waiting=0.0, busy=0.0)
    assert [signs(policy.decide(workload(idle))) for _ in range(6)] == [{}] * 5 + [{"evaluate": -1}]
    assert [len(policy.decide(workload(busy))) for _ in range(7)] == [0, 0, 0, 0, 0, 1, 1]


def test_use_is_a_mean_over_the_last_looks() -> None:
    first, later = stage("generate", place="first"), stage("evaluate")
    policy = Pressure(memory=4, patience=1, rest=0)
    for _ in range(40):
        policy.decide(workload(first, later, open_calls=300))
    assert signs(policy.decide(workload(first, later, open_calls=0))) == {"generate": 1}
    assert signs(Pressure(memory=1, patience=1).decide(workload(first, later, open_calls=151))) == {"generate": -1}


def test_median_rate_says_how_many_items_a_second_there_were() -> None:
    seen = workload(stage("a", produced=4), stage("b", produced=4), stage("c", produced=1), stage("d", produced=9))
    slow, fast = MedianRate().decide(seen)
    assert (slow.reason, fast.reason) == (
        "it hands on 0.100 items a second, less than half the median stage's 0.400",
        "it hands on 0.900 items a second, more than twice the median stage's 0.400",
    )


@pytest.mark.parametrize(("workers", "calls", "by"), [(7, 20, 1), (8, 20, None), (2, 300, -1), (1, 300, None)])
def test_the_valve_goes_to_the_bounds_and_no_further(workers: int, calls: int, by: int | None) -> None:
    policy = Pressure(memory=1, patience=1)
    seen = workload(stage("generate", place="first", workers=workers), stage("evaluate"), open_calls=calls)
    assert signs(policy.decide(seen)) == ({} if by is None else {"generate": by})


@pytest.mark.parametrize(("produced", "by"), [(1, 1), (2, None), (3, None), (8, None), (9, -1)])
def test_half_and_twice_the_median_are_within_its_band(produced: int, by: int | None) -> None:
    seen = workload(stage("a", produced=4), stage("b", produced=4), stage("c", produced=produced))
    assert signs(MedianRate().decide(seen)) == ({} if by is None else {"c": by})


def test_where_most_hand_nothing_on_nobody_is_too_fast() -> None:
    assert not MedianRate().decide(workload(stage("a", produced=0), stage("b", produced=0), stage("c", produced=9)))
    assert not MedianRate().decide(workload())


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
