"""`bench.overhead` in small: its result file has what the page and its readers look for. No timing is asserted.

What is not run here is the memory of processes of their own.
"""

from __future__ import annotations

import pytest

from bench.overhead import costs as overhead
from bench.overhead.growth import PARTS
from bench.overhead.section import GROWN, LEVELS, answer, goals, section

SIZE = 100


@pytest.fixture(scope="module")
def made() -> dict[str, object]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overhead, "LEVELS", dict.fromkeys(LEVELS, 40))  # a tenth of the calls are made
        patch.setattr(overhead, "memory", lambda levels: (80.0, {f"{level}": 90.0 for level in levels}))
        patch.setattr(overhead, "PARTS", {name: (grow, 10 * SIZE) for name, (grow, _) in PARTS.items()})
        patch.setattr(overhead, "CANDIDATES", 10 * SIZE)
        return overhead.measure(quick=True)


def test_the_result_has_its_figures(made: dict[str, object]) -> None:
    for name in ("cpu_ms_per_call", "calls_per_second", "raw_cpu_ms_per_call", "sdk_cpu_ms_per_call", "rss_mb_idle"):
        value = made[name]
        assert isinstance(value, float)
        assert value > 0
    assert {"machine", "versions", "commit", "date", "targets", "settings"} <= made.keys()
    memory, costs = made["rss_mb"], made["costs"]
    assert isinstance(memory, dict)
    assert isinstance(costs, dict)
    assert list(memory) == ["100", "1000", "10000"]
    ways = (*overhead.WAYS, *overhead.ON_UVLOOP)
    assert set(costs) == {f"{way}, {level} in flight" for way in ways for level in LEVELS}


def test_the_page_holds_a_call_against_aiohttp_alone(made: dict[str, object]) -> None:
    at = f"{max(LEVELS)} in flight"
    cost = {
        "aiohttp alone": 0.1,
        "our client over aiohttp": 0.15,
        "the same without run directory": 0.2,
        "engine and client over aiohttp": 0.3,
        "aiohttp alone, on uvloop": 0.08,
        "engine and client over aiohttp, on uvloop": 0.24,
    }
    costs = made["costs"]
    assert isinstance(costs, dict)
    fixed = {f"{way}, {at}": {**costs[f"{way}, {at}"], "cpu_ms": _spread(each)} for way, each in cost.items()}
    for level, each in ((64, 0.4), (1, 0.5)):
        for way, spent in (("aiohttp alone", 0.1), ("engine and client over aiohttp", each)):
            fixed[f"{way}, {level} in flight"] = {**costs[f"{way}, {at}"], "cpu_ms": _spread(spent)}
    page = section({**made, "costs": {**costs, **fixed}})
    assert "3.0 times: missed." in page
    assert "2.4 times (met), and 3.0 times aiohttp alone on the same loop." in page
    assert "| the run directory | 0.10 | 33 % |" in page
    said = answer({**made, "costs": {**costs, **fixed}})
    assert said.startswith(
        "with preset `plain` 0.30 ms of CPU time for each call with 512 calls in flight, 3.0 times aiohttp alone "
        "(goal of at most 2.5: missed); "
    )
    assert said.endswith("; 4.0 with 64, 5.0 with 1")
    older = {name: each for name, each in {**costs, **fixed}.items() if "uvloop" not in name}
    assert "uvloop" not in section({**made, "costs": older})


def _spread(value: float) -> dict[str, float]:
    return {"median": value, "low": value, "high": value}


def test_everything_that_grows_is_measured_at_two_sizes_or_more(made: dict[str, object]) -> None:
    growth = made["growth"]
    assert isinstance(growth, dict)
    assert list(growth) == [*PARTS, overhead.WHOLE]
    for part in growth.values():
        sizes = [int(size) for size in part["seconds_at"]]
        assert sizes[-2:] == [SIZE // 10, SIZE]
        assert part["n"] == SIZE
        assert part["ratio"] == part["seconds"] / part["seconds_at"][f"{SIZE // 10}"]


def test_the_page_has_a_verdict_on_growth(made: dict[str, object]) -> None:
    growth = {"as it may": {"n": 100, "seconds": 1.0, "seconds_at": {}, "ratio": 11.0, "n_log_n": 12.5}}
    whole = {overhead.WHOLE: {**growth["as it may"], "seconds_at": {"100": 1.0}}}
    page = section({**made, "growth": {**growth, **whole}})
    assert "| as it may | 100 | 1.0 s | 11.0 | 12.5 | met |" in page
    assert "from a tenth of n to n: met." in page
    fast = {"too fast": {**growth["as it may"], "ratio": 15.0}}
    page = section({**made, "growth": {**fast, **whole}})
    assert "missed by too fast (20 % above it)." in page


def test_a_goal_for_growth_says_what_it_is_the_cost_of(made: dict[str, object]) -> None:
    assert GROWN.keys() == {*PARTS, overhead.WHOLE}
    waiting = {"line at the gate, waiting requests": {"ratio": 15.0, "n_log_n": 12.5}}
    assert goals({**made, "growth": waiting})["growing cost of waiting requests"] is False
