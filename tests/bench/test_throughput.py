"""What a recording comes to, how methods are compared, and the page that is made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.recording import Role, Span
from bench.report.throughput import section
from bench.throughput import Place, Plan, content
from bench.throughput_ratios import ratio, ratios
from bench.throughput_runs import Figures, Run, figures, in_flight

SECONDS = 100.0


def span(begun: float, ended: float, tokens: int | None = 10, role: Role = "rollout") -> Span:
    return Span(begun, ended, role, 100, None, tokens)


def run(
    *spans: Span, method: str = "stream", start: float = 0.0, accepted: Sequence[tuple[float, float]] = ((0.0, 0.5),)
) -> Run:
    return Run(method, "aime", start, start + SECONDS, spans, tuple(accepted), (0.0,), 1.0, 2.0, speed=10.0)


def test_in_flight_is_weighted_by_time() -> None:
    assert in_flight([span(0, 10), span(5, 20)], 0, 25) == [(1, 5), (2, 5), (1, 10), (0, 5)]
    found = figures(run(span(0, 60), span(0, 30)))
    assert found.mean_in_flight == pytest.approx(0.9)
    assert found.median_in_flight == 1
    assert found.idle_share == pytest.approx(0.7)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)).map(sorted), max_size=20))
def test_in_flight_adds_up_to_the_time_that_spans_take(times: list[list[float]]) -> None:
    levels = in_flight([span(begun, ended) for begun, ended in times], 0, SECONDS)
    assert math.fsum(seconds for _, seconds in levels) == pytest.approx(SECONDS)
    busy = math.fsum(ended - begun for begun, ended in times)
    assert math.fsum(level * seconds for level, seconds in levels) == pytest.approx(busy, abs=1e-6)


def test_only_what_is_written_within_the_time_counts() -> None:
    found = figures(run(span(0, 20, 100), span(90, 130, 100), span(115, 120, None), start=10))
    assert found.output_tokens_per_s == pytest.approx((50 + 50) / SECONDS)


def test_proposals_are_answered_reflections() -> None:
    found = figures(run(span(0, 9, 5, "reflection"), span(9, 12, None, "reflection"), span(12, 200, 5, "reflection")))
    assert found.proposals_per_min == pytest.approx(60 / SECONDS)


def test_of_merged_reflections_the_proposals_that_were_made_count() -> None:
    merging = run(*(span(n, n + 1, 5, "reflection") for n in range(8)), span(9, 10, 5, "merge"), method="combee_10")
    assert figures(merging).proposals_per_min == 0
    assert figures(replace(merging, proposed=(-1.0, 11.0, SECONDS + 1))).proposals_per_min == pytest.approx(
        60 / SECONDS
    )


def test_what_was_accepted_before_the_time_is_in_the_score_alone() -> None:
    found = figures(run(span(0, 60, 600), start=5, accepted=[(0, 0.4), (50, 0.6), (60, 0.5)]))
    assert found.accepted_per_min == pytest.approx(2 * 60 / SECONDS)
    assert found.tokens_per_accepted == pytest.approx(550 / 2)
    assert found.best_score == 0.6
    assert found.curve == ((0, 0.4), (50, 0.6))


def test_a_ratio_is_to_the_best_of_the_others_on_each_workload() -> None:
    found = ratio({"a": [[6.0, 6.0], [1.0, 1.0], [2.0, 2.0]], "b": [[8.0, 8.0], [2.0, 2.0], [1.0, 1.0]]})
    assert found is not None
    assert found.by_workload == {"a": 3.0, "b": 4.0}
    assert found.mean == 3.5
    assert (found.low, found.high) == (3.0, 4.0)


def test_without_anything_to_compare_with_there_is_no_ratio() -> None:
    assert ratio({}) is None
    assert ratio({"a": [[6.0], [0.0]]}) is None
    assert set(ratios("vllm", {("aime", "stream"): [figures(run(span(0, 1)))]}).values()) == {None}


@pytest.fixture
def made() -> dict[str, object]:
    methods: Mapping[str, int] = {"gepa_sync": 2, "gepa_pxn_4x4": 8, "stream": 12, "ceiling": 0}
    found: dict[tuple[str, str], list[tuple[Run, Figures]]] = {}
    for method, proposals in methods.items():
        spans = [span(n, n + 1, 50, "reflection") for n in range(proposals)] + [span(0, 90, 900)]
        one = run(*spans, method=method)
        found["aime", method] = [(one, figures(one))] * 2
    plan = Plan(list(methods), ["aime"], repeats=2, seconds=10, concurrency=64, seed=0)
    return content({Place("qwen3-8b-h100", "vllm"): found}, plan, command="python -m bench.throughput")


def test_the_result_file_has_rows_and_ratios(made: dict[str, object]) -> None:
    assert made["simulated"] is True
    assert {"machine", "versions", "commit", "date", "rows", "ratios"} <= set(made)
    versions, found, rows = made["versions"], made["ratios"], made["rows"]
    assert isinstance(versions, dict)
    assert isinstance(found, dict)
    assert isinstance(rows, list)
    assert versions["gepa"] == "0.1.4"
    assert found["stream_vs_gepa_sync_vllm"] == pytest.approx(6)
    assert found["stream_vs_gepa_pxn_vllm"] == pytest.approx(1.5)
    assert found["stream_vs_combee_vllm"] is None
    assert found["saturation_vllm"] == pytest.approx((900 + 600) / 900)
    assert [(row["server"], row["workload"], row["method"]) for row in rows] == [
        ("qwen3-8b-h100", "aime", method) for method in sorted(("gepa_sync", "gepa_pxn_4x4", "stream", "ceiling"))
    ]


def test_the_page_shows_every_method_and_our_settings(made: dict[str, object]) -> None:
    page = section(made)
    assert page.startswith("## Throughput\n")
    assert "| gepa 0.1.4, synchronous | 1.20 |" in page
    assert "| `stream` over gepa's best PxN width | 1.50 |" in page
    assert 'policy = "pressure"' in page
