"""What is said of one adapter's proposals."""

from __future__ import annotations

from bench.gepa_adapter.section import answer, by_default, section


def test_the_answer_is_ours_and_gepas_rate() -> None:
    figures = {"seconds": 26.0, "proposals": 9.0, "requests_per_second": 3.0, "best_score": 0.5}
    rates = {"gepa 0.1.4, synchronous": 45.0, "gepa 0.1.4, PxN 8x8": 344.0}
    rates |= {"ours, adapter_concurrency=1": 44.0, "ours, adapter_concurrency=16": 599.0}
    runs = {name: [{**figures, "proposals_per_minute": rate}] for name, rate in rates.items()}
    content = {"runs": runs, "settings": {"seconds": 25.0, "repeats": 1, "threads": 32, "validation": 20}}
    assert answer(content) == (
        "599 with `adapter_concurrency=16` and 44 by default, where gepa made 45 one at a time and at most 344 in batches"
    )
    assert "| ours, adapter_concurrency=16 | 26 | 9 | 599 | 3 | 0.50 |" in section(content)


def test_the_default_is_ours_with_the_fewest_calls_at_a_time_over_gepa_one_at_a_time() -> None:
    rates = {
        "gepa 0.1.4, synchronous": 50,
        "gepa 0.1.4, PxN 4x4": 180,
        "ours, adapter_concurrency=1": 45,
        "ours, 4": 99,
    }
    runs = {name: [{"proposals_per_minute": rate}] * 3 for name, rate in rates.items()}
    assert by_default({"runs": runs}) == 0.9
