"""What is said of the ablations."""

from __future__ import annotations

from bench.ablations.section import answer


def test_the_answer_has_the_scores_of_every_number_of_workers() -> None:
    scores = {"full 4x4": 0.67, "full 16x8": 0.6, "reflective 4x4": 0.96, "reflective 16x8": 0.95}
    runs = {name: {"held out": {"median": score}} for name, score in scores.items()}
    content = {"tables": {"staleness": {"runs": runs}}, "settings": {"minutes": 30.0}}
    assert answer(content) == (
        "held-out score after 30 minutes with `full`, `reflective`: 0.67, 0.96 with 4x4 workers; "
        "0.60, 0.95 with 16x8 workers (medians)"
    )
