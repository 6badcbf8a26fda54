"""What is said of ACE in both modes."""

from __future__ import annotations

import pytest

from bench._lib.text import Content
from bench.ace.section import answer, section
from bench.report.results import read


def result(reached: int, median: float, high: float) -> Content:
    content = read("ace")
    assert content is not None
    ratio = {"median": median, "low": 0.1, "high": high}
    spread = {**content["spread"], "time_to_sync_score_ratio": ratio}
    return {**content, "spread": spread, "reached": reached, "settings": {**content["settings"], "seeds": [0, 1, 2, 3]}}


@pytest.mark.parametrize(
    ("reached", "median", "said"),
    [
        (4, 0.3, "after 0.30 (0.10–0.90) of the time, learning"),
        (3, 0.3, "after 0.30 (0.10–never) of the time (1 of 4 runs never reach it), learning"),
        (
            2,
            1.2,
            "after more time than was measured (2 of 4 runs never reach it; the soonest has it after 0.10 of lockstep's time), ",
        ),
    ],
)
def test_runs_that_never_have_the_score_are_counted(reached: int, median: float, said: str) -> None:
    assert answer(result(reached, median, 0.9 if reached == 4 else 2.0)).startswith(said)


def test_less_time_at_a_higher_rate_may_be_more_samples() -> None:
    content = result(3, 0.3, 2.0)
    rates = {"sync_samples_per_minute": 2.0, "stream_samples_per_minute": 20.0}
    spread = content["spread"] | {name: dict.fromkeys(("median", "low", "high"), at) for name, at in rates.items()}
    assert answer({**content, "spread": spread}).endswith(", so from 3.0 times as many samples until then")
    assert "until then" not in answer({**content, "spread": spread, "reached": 2}), "the median run never gets there"


def test_the_page_says_when_scores_are_first_taken() -> None:
    content = result(4, 0.3, 0.9)
    rises = {"sync_first_rise_minutes": 10.5, "stream_first_rise_minutes": 2.5}
    spread = content["spread"] | {name: dict.fromkeys(("median", "low", "high"), at) for name, at in rises.items()}
    said = " ".join(section({**content, "spread": spread}).split())
    assert "It first rises after 10.5 minutes in lockstep and 2.5 in the stream." in said
