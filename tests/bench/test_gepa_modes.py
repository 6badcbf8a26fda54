"""What is said of the stream beside lockstep."""

from __future__ import annotations

from bench.gepa_modes.section import answer


def test_the_answer_says_what_was_set_and_how() -> None:
    time, rate = ({"median": at, "low": at, "high": at} for at in (0.5, 3.0))
    content = {
        "spread": {"time_to_sync_score_ratio": time, "proposals_ratio": rate},
        "settings": {"width": 8, "seeds": [0, 1, 2, 3]},
    }
    assert answer(content) == (
        "with 8 flows of preset `plain`, not the defaults, 0.50 of the time at 3.00 times the proposals a minute, so "
        "1.5 times the proposals; the width was chosen partly on three of the 4 seeds"
    )
