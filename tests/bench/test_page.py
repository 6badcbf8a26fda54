"""The bench of the live page: what is lost comes from pairs of the same round, and each goal gets its verdict."""

from __future__ import annotations

import pytest

from bench.page.section import BROWSERS, NOBODY, answer, lost, section


def content(watched: tuple[float, float], frames: float) -> dict[str, object]:
    runs = [
        {"way": way, "calls_per_second": calls, "cpu_ms_per_call": 1.0}
        for alone, each in zip((500.0, 400.0), watched, strict=True)
        for way, calls in ((BROWSERS, each), (NOBODY, alone))
    ]
    view = {"view": "Log", "opening": 0.2, "frames_per_second": frames, "slowest": 30.0}
    sizes = {"candidates": 10_000, "calls": 10_000, "log": 150_000}
    settings = {"rounds": 2, "seconds": 20.0, "latency": 0.12, "concurrency": 64}
    return {"runs": runs, "frames": {"opening": 1.5, "sizes": sizes, "views": [view]}, "settings": settings}


def test_what_is_lost_is_the_mean_over_rounds_and_not_the_quotient_of_two_means() -> None:
    found = lost(content((490.0, 400.0), 60.0), BROWSERS)
    assert found.value == pytest.approx(0.01)
    assert found.low < 0.0
    assert answer(content((490.0, 400.0), 60.0)) == (
        "1.0 % (-8.2 % to 10.2 %) of its calls a second, where a server that allows 533 is the limit"
    )


@pytest.mark.parametrize(
    ("watched", "frames", "verdicts"),
    [
        ((490.0, 392.0), 60.0, ("met", "met")),
        ((450.0, 400.0), 60.0, ("missed", "met")),
        ((500.0, 400.0), 29.0, ("met", "missed")),
    ],
)
def test_each_goal_has_its_verdict(watched: tuple[float, float], frames: float, verdicts: tuple[str, str]) -> None:
    made = section(content(watched, frames))
    cost, smooth = verdicts
    assert f"at most 3 % lost with three browsers by a run with time to spare, is {cost}." in made
    assert f"at least 30 frames a second in each view, is {smooth}." in made
    assert f"| Log | 0.20 | {frames:.0f} | 30 |" in made
