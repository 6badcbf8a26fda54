"""What is said of the stream beside lockstep."""

from __future__ import annotations

from bench.gepa_modes.section import answer


def test_the_answer_says_what_was_set_and_how() -> None:
    spread = {"median": 0.5, "low": 0.5, "high": 0.5}
    content = {
        "spread": {"time_to_sync_score_ratio": spread, "proposals_ratio": spread},
        "settings": {"width": 8, "seeds": [0, 1, 2, 3]},
    }
    assert answer(content) == (
        "with 8 flows of preset `plain`, not the defaults, 0.50 of the time and 0.50 times the proposals a minute; the "
        "width was chosen partly on three of the 4 seeds"
    )
