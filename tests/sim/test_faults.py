"""Whole runs on a simulated server that fails: they end, and every item is accounted for."""

from __future__ import annotations

from collections import Counter

import pytest

from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.sim.faults import FAULTS, Fault, Faults
from tests.support.depth import LONG


def evolve(
    rate: float,
    kinds: tuple[Fault, ...],
    seed: int = 0,
    *,
    mode: str = "stream",
    stream: bool = False,
    proposals: int = 12,
) -> tuple[Result, list[Event], list[CallRecord]]:
    config = parse_config(
        {
            "seed": seed,
            "clock": "virtual",
            "algorithm": {"mode": mode},
            "llm": {
                "timeout_seconds": 120,
                "patience_seconds": 3000,
                "stream": stream,
                **({"idle_seconds": 10} if stream else {}),
            },
            "sim": {"faults": {"rate": rate, "kinds": list(kinds), "seed": seed}},
            "budget": {"proposals": proposals},
        },
        "test",
    )
    events: list[Event] = []
    calls: list[CallRecord] = []

    async def go() -> Result:
        return await run(config, watchers=Watchers(events=[events.append], calls=[calls.append]))

    return clock.run(go, clock="virtual"), events, calls


def check_accounts(result: Result, events: list[Event], calls: list[CallRecord]) -> None:
    """Every item ended once, every flow was closed, and every call was accounted for."""
    came = Counter(str(event.data["item"]) for event in events if event.kind == "item.sent")
    came.update(str(event.data["flow"]) for event in events if event.kind == "flow.open")
    ended = Counter(str(event.data["item"]) for event in events if event.kind in ("item.done", "item.held"))
    assert came == ended
    assert set(ended.values()) == {1}
    flows = Counter(event.kind for event in events)
    assert flows["flow.open"] == flows["flow.close"]
    assert result.report.held == 0
    assert result.llm.requests == len(calls)
    assert result.llm.failed == sum(call.error is not None for call in calls)
    assert result.llm.retries == sum(call.attempts - 1 for call in calls)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stream", [False, True])
def test_a_fifth_of_all_calls_going_wrong(seed: int, stream: bool) -> None:
    result, events, calls = evolve(0.2, FAULTS, seed, stream=stream)
    check_accounts(result, events, calls)
    assert result.report.stop_reason == "proposals"
    assert result.report.accepted > 0
    assert 0.1 < result.llm.retries / result.llm.requests < 0.3


@pytest.mark.parametrize("kind", FAULTS)
def test_half_of_all_calls_going_wrong_in_one_way(kind: Fault) -> None:
    result, events, calls = evolve(0.5, (kind,), proposals=12 if LONG else 4)
    check_accounts(result, events, calls)
    assert (result.llm.estimated if kind == "no_usage" else result.llm.retries) > 100
    assert result.report.stop_reason == "proposals"


def test_calls_that_fail_for_good_are_counted_and_the_run_goes_on() -> None:
    result, events, calls = evolve(0.8, ("error", "malformed", "html"))
    check_accounts(result, events, calls)
    assert 0.3 < result.llm.failed / result.llm.requests < 0.5


def test_runs_under_faults_repeat() -> None:
    first, again = evolve(0.2, FAULTS), evolve(0.2, FAULTS)
    assert first[1:] == again[1:]
    assert first[1] != evolve(0.2, FAULTS, seed=1)[1]


def test_which_attempts_go_wrong_depends_on_seed_and_request_alone() -> None:
    def drawn(requests: list[int], seed: int = 7) -> dict[int, list[Fault | None]]:
        faults = Faults(0.3, seed=seed)
        return {request: [faults.draw(request) for _ in range(5)] for request in requests}

    numbers = list(range(300))
    forwards = drawn(numbers)
    assert forwards == drawn(numbers[::-1]) != drawn(numbers, seed=8)
    assert 60 < sum(attempts[0] is not None for attempts in forwards.values()) < 120
    assert {fault for attempts in forwards.values() for fault in attempts} == {None, *FAULTS}


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ({"rate": 1.5}, r"sim\.faults\.rate"),
        ({"rate": 0.5, "kinds": []}, r"sim\.faults\.kinds"),
        ({"kinds": ["flood"]}, r"sim\.faults\.kinds"),
        ({"share": 0.5}, r"sim\.faults\.share: unknown key"),
    ],
)
def test_faults_that_make_no_sense(faults: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_config({"sim": {"faults": faults}, "budget": {"proposals": 1}}, "test")
