"""The gain of the defaults by the length of synchronous gepa's run, and how many texts agentdescent merges at a time."""

from __future__ import annotations

import pytest

from bench._lib.text import Content
from bench._lib.time_to_score import Row, Rows
from bench.throughput.goals import places
from bench.throughput.lengths import after, by_length
from bench.throughput.notes import sizes
from bench.throughput.section import answer

Scores = list[tuple[float, float]]
"""What the best candidate of a run was worth after the seed's, by the minute from which on it was there."""
GEPA: Scores = [(2, 0.3), (8, 0.5), (40, 0.7)]
STREAM: Scores = [(3, 0.4), (4, 0.6), (10, 0.8)]


def row(workload: str, method: str, *runs: Scores) -> Row:
    held_out = [[(0.0, 9, 9, 0.2), *((60.0 * minute, 99, 99, worth) for minute, worth in run)] for run in runs]
    values = {"proposals_per_min": [1.0] * len(runs), "output_tokens_per_s": [1.0] * len(runs)}
    return {"server": "gpu", "workload": workload, "method": method, "held_out": held_out, "values": values}


def content(*rows: Row) -> Content:
    ratios = {"stream_vs_gepa_sync_vllm": 1.0}
    return {"simulated": True, "rows": rows, "ratios": ratios, "settings": {"minutes": 60.0}, "workloads": {}}


@pytest.fixture
def made() -> Content:
    late: Scores = [(20, 0.3)]
    return content(
        row("aime", "gepa_sync", GEPA, late),
        row("aime", "stream", STREAM, STREAM),
        row("hover", "gepa_sync", GEPA, GEPA),
        row("hover", "stream", [(4, 0.8)], [(4, 0.8)]),
    )


def test_the_score_to_reach_is_the_one_that_gepa_has_by_then(made: Content) -> None:
    lines = {line.split(" | ")[1]: line.split(" | ")[2:] for line in by_length(made).splitlines() if "vllm" in line}
    # gepa has 0.3 after 2 minutes, 0.5 after 8 and 0.7 after 40; the other run on aime 0.3 after 20 minutes
    assert lines["2.5"] == ["1.50 (2 pairs), 2.00", "0.25 to 0.30", "0.20 |"]
    assert lines["10"][0] == "0.50 (2 pairs), 0.50", "4 / 8"
    assert lines["20"][0] == "0.33, 0.50", "4 / 8 and 3 / 20"
    assert lines["60"] == ["0.20, 0.10", "0.50 to 0.70", "0.80 |"], "10 / 40 and 3 / 20, 4 / 40"
    assert lines["1"][0] == "–, –", "gepa has but its seed's score"
    rows = list(places(made).values())
    assert (after(rows, 2.5), after(rows, 20), after(rows, 1)) == ("1.50 to 2.00", "0.33 to 0.50", "")
    assert by_length({**made, "simulated": False}) == ""
    assert by_length(content(*({**each, "held_out": []} for each in made["rows"]))) == ""


def test_the_answer_has_the_times_of_agentdescent_where_it_merged(made: Content) -> None:
    assert "agentdescent" not in answer(made)
    rows = [*made["rows"], *(row(name, "agentdescent_merging", [(8, 0.7)]) for name in ("aime", "hover"))]
    assert "; agentdescent with merging after 0.20 to 0.30; " in answer({**made, "rows": rows})


def merged(validations: float, alone: float, flows: int) -> Rows:
    """One workload, with the validations for each proposal of agentdescent with its merging and without."""
    rates = {"agentdescent_merging": validations, "agentdescent": alone}
    return {
        **{("aime", method): {"validations_per_min": rate, "proposals_per_min": 1.0} for method, rate in rates.items()},
        ("aime", "stream"): {"values": {"flows": [flows, 2]}},
    }


def test_how_many_texts_agentdescent_merges_is_estimated_from_what_it_validates_without_merging() -> None:
    said = " ".join(sizes({"vllm": merged(0.05, 0.6, 8), "api": merged(0.1, 0.5, 7)}).split())
    assert "it was about 5 to 12, by workload and server, of which 12 on `aime` (vllm) is beyond that." in said
    assert said.endswith("`stream` had at most 8 proposals under way at a time.")
    assert "beyond" not in sizes({"vllm": merged(0.1, 0.5, 8)})
    assert sizes({"vllm": {("aime", "agentdescent_merging"): {}}}) == ""
