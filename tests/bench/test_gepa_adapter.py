"""What is said of one adapter's proposals."""

from __future__ import annotations

from bench.gepa_adapter.section import UNGROUPED, answer, section


def content(commit: str) -> dict[str, object]:
    figures = {"proposals": 9.0, "requests_per_second": 3.0, "best_score": 0.5}
    rates = {"gepa 0.1.4, synchronous": 45.0, "gepa 0.1.4, PxN 8x8": 344.0, "ours, adapter_concurrency=16": 599.0}
    runs = {name: [{**figures, "proposals_per_minute": rate}] for name, rate in rates.items()}
    settings = {"seconds": 25.0, "repeats": 1, "threads": 32, "validation": 20}
    return {"runs": runs, "settings": settings, "commit": commit}


def test_the_answer_is_ours_and_gepas_rate() -> None:
    rates = "599 with `adapter_concurrency=16`, where gepa made 45 one at a time and at most 344 in batches"
    assert answer(content("abc")) == rates
    assert UNGROUPED not in section(content("abc"))


def test_of_a_result_from_before_groups_it_is_said_that_it_is_not_the_defaults() -> None:
    assert answer(content(UNGROUPED)).startswith("not measured since the default validates edits in groups; before")
    assert f"measured at {UNGROUPED}, when each edit was validated by itself" in section(content(UNGROUPED))
