"""What is said of Meta-Harness as a stream."""

from __future__ import annotations

from collections.abc import Mapping

from bench.meta_harness.section import answer
from bench.report.results import read


def test_the_answer_says_when_the_range_spans_what_is_published_and_what_the_harnesses_are_worth() -> None:
    content = read("meta_harness")
    assert content is not None

    def said(low: float) -> str:
        found: Mapping[str, object] = {
            "proposals_ratio": {"median": 5.0, "low": low, "high": 6.0, "n": 3},
            "sync_best_score": {"median": 0.7},
            "stream_best_score": {"median": 0.9},
        }
        return answer({**content, "goal": 4.7, "spread": {**content["spread"], **found}})

    assert said(4.6).endswith(
        "and a best score of 0.90 in place of 0.70; FlashEvolve reports 4.7 times, inside that range"
    )
    assert "inside" not in said(4.8)
