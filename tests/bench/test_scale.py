"""Many simulated replicas: they write as many times one's tokens, and one that dies costs no more than its share."""

from __future__ import annotations

from bench.scale.measurements import GOAL, GOAL_REPLICAS, grow
from bench.scale.open_calls import cost
from bench.scale.replicas import WARM_UP, WINDOW, Outage, dips, serve
from bench.scale.section import answer


def test_eight_replicas_write_nearly_eight_times_what_one_does() -> None:
    one, eight = (
        serve(replicas, 7, WARM_UP + WINDOW).tokens_per_second(WARM_UP, WARM_UP + WINDOW)
        for replicas in (1, GOAL_REPLICAS)
    )
    assert eight >= GOAL * GOAL_REPLICAS * one


def test_a_replica_that_dies_costs_no_more_than_its_share_and_is_used_again() -> None:
    outage = Outage(begins=90.0, ends=120.0)
    served = serve(4, 7, outage.ends + WARM_UP + 30.0, outage=outage)
    rates = dips(served, outage, 30.0)
    assert rates["away"] >= 0.75 * rates["before"]
    assert rates["after"] >= 0.95 * rates["before"]
    assert [span for span in served.spans[0] if span.begun > outage.ends]


def test_all_calls_of_a_validation_are_open_at_once() -> None:
    assert cost(300)["open"] == 300


def test_what_candidates_cost_is_measured() -> None:
    found = grow(200)
    assert found["candidates"] == 200
    assert found["pool_seconds"] > 0


def test_the_answer_says_what_the_defaults_make_of_many_replicas_and_when_a_core_is_full() -> None:
    def spread(value: float) -> dict[str, float]:
        return {"median": value, "low": value, "high": value}

    content = {
        "replicas": [{"replicas": 1, "share": spread(1.0)}, {"replicas": 8, "share": spread(0.97)}],
        "defaults": {"1": spread(2000.0), "8": spread(2200.0)},
        "real": [{"in_flight": 64, "cpu_ms": spread(0.1)}, {"in_flight": 512, "cpu_ms": spread(0.5)}],
        "goal": {"replicas": 8, "share": 0.9},
        "settings": {"preset": "flashevolve"},
    }
    said = answer(content)
    assert "8 replicas write 0.97 of 8 times one's tokens with preset `flashevolve`" in said
    assert "1.10 times one's with the defaults" in said
    assert said.endswith("a core is full with some 2,000 calls a second")
