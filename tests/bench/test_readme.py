"""README stays on one screen, and its figures are those of the files in bench/results."""

from __future__ import annotations

import re
from typing import Any

import pytest

import flowevolve as fe
from bench.report import gains, readme
from bench.report.readme import BLOCKS, README, figures, picture, written
from bench.report.results import read


def test_the_pages_say_what_the_results_say() -> None:
    for path in BLOCKS:
        assert path.read_text(encoding="utf-8") == written(path), "write them again: python -m bench.report.readme"


def test_it_has_at_most_120_lines() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def test_the_scores_that_the_first_example_promises_are_those_it_has() -> None:
    said = re.search(r"# the best validation score rises from ([\d.]+) to ([\d.]+)", README.read_text(encoding="utf-8"))
    assert said is not None
    result = fe.optimize("house_style", llm="simulated", clock="virtual", budget=fe.Budget(minutes=10))
    assert [f"{score:.2f}" for score in (result.seed_score or 0.0, result.best.score if result.best else 0.0)] == [
        said[1],
        said[2],
    ]


def row(server: str, workload: str, method: str, **figures: float) -> dict[str, object]:
    """A row of a bench of throughput, in which every run has its last score after ``seconds``, for ``tokens``."""
    known = {
        "proposals_per_min": 1.0,
        "output_tokens_per_s": 100.0,
        "mean_in_flight": 4.0,
        "seconds": 100.0,
        "calls": 500,
        "tokens": 1000,
        **figures,
    }
    worths = [[0.0, 20, 10, 0.1], [known["seconds"], 400, known["tokens"], 0.5]]
    if method == "stream":
        worths.append([90.0, 450, known["tokens"] + 100, 0.4])
    values = {name: [value, value] for name, value in known.items()}
    return {
        "server": server,
        "workload": workload,
        "method": method,
        **known,
        "values": values,
        "held_out": [worths] * 2,
    }


def throughput(*, most: str) -> dict[str, object]:
    """Two workloads on both simulated servers; ``most`` is the one with most requests in flight."""
    rows = [
        row(server, workload, method, **came_to)
        for server in ("gpu", "api")
        for workload in ("aime", "hover")
        for method, came_to in {
            "gepa_sync": {},
            "gepa_pxn_4x4": {"seconds": 50.0, "mean_in_flight": 30.0},
            "stream": {"seconds": 25.0, "tokens": 500, "mean_in_flight": 40.0 if workload == most else 20.0},
            "stream_real": {"seconds": 75.0, "tokens": 500},
            "plain": {"seconds": 40.0, "tokens": 3000},
            "agentdescent_merging": {"seconds": 60.0 if workload == "aime" else 90.0, "tokens": 800},
            "flashevolve": {"seconds": 60.0, "tokens": 2000, "output_tokens_per_s": 900.0},
            "ceiling": {"output_tokens_per_s": 1000.0},
        }.items()
    ]
    return {
        "commit": "abc",
        "rows": rows,
        "ratios": {"stream_vs_gepa_sync_vllm": 1.0, "stream_vs_gepa_sync_api": 1.0},
        "settings": {"minutes": 40.0, "concurrency": 64},
        "workloads": {"aime": {"validation": 20}, "hover": {"validation": 30}},
    }


def given(monkeypatch: pytest.MonkeyPatch, **results: dict[str, object]) -> None:
    """These results in place of those in bench/results; the others are as they are there."""
    monkeypatch.setattr(readme, "read", lambda name: results.get(name) or read(name))


def test_times_and_the_room_of_a_server_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, throughput=throughput(most="hover"))
    said = " ".join(figures().split())
    assert "ends an hour with after 0.25 of its time, and for 0.50 of its tokens** (medians" in said
    assert "0 of 8 runs miss one of these scores)." in said
    assert "over its own: `aime` with 20, `hover` with 30 rows for validation | 0.25, 0.25 | 0.25, 0.25 |" in said
    assert "| tokens to that score, over its own | 0.50, 0.50 | 0.50, 0.50 |" in said
    assert "with ours in real time, as gepa's, by workload | 0.75 and 0.50 | 0.75 and 0.50 |" in said
    assert "| proposals, and output tokens a second | 1.00 times, 1.00 times |" in said
    assert "of each workload 2 of synchronous gepa, 2 of each parallel width and 2 of ours" in said
    assert "8 of 8 and 8 of 8 pairs lose it later." in said
    assert "(PxN): 1.0 and 1.0 times as many as the defaults (at most 1.0 and 1.0, by workload)." in said
    assert "soonest width has synchronous gepa's last score after 0.50 and 0.50 (4x4) of the latter's time." in said
    assert (
        "have sooner than the soonest width on 4 of 4 workloads, later on 0, not at all on 0 "
        "(in real time, as gepa ran: on 0 of 4 workloads, later on 4, not at all on 0)." in said
    )
    below = "-0.400 (-0.400 to -0.400; below in all pairs on 2 of 2 workloads)"
    assert (
        f"(`plain`): such a time, tokens and score, by workload | 0.40; 3.00; {below} | 0.40; 3.00; {below} |" in said
    )
    assert (
        "agentdescent with its merging, in real time: such a time, tokens and score, by workload | 0.60 to 0.90; 0.80"
        in said
    )
    assert (
        "agentdescent with its own merging takes 0.60 to 0.90 and 0.80: it is sooner than the defaults in real" in said
    )
    assert "in real time on 2 of 4 workloads, and cheaper on 0." in said
    assert "less its own | +0.400 (+0.400 to +0.400; above in all pairs on 2 of 2 workloads) |" in said
    assert (
        "At equal tokens 8 of 8 runs of the defaults and 0 of 8 of gepa's are within 0.01 of the highest score, 0.500."
        in said
    )
    said = " ".join(readme.room().split())
    assert "a simulated GPU writes 0.10 of the tokens that it could write, and a simulated API 0.10" in said
    assert "with it these write 0.90 and 0.90 of what they could" in said


def test_the_picture_says_how_much_of_the_truth_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, throughput=throughput(most="hover"))
    said = " ".join(picture("../", "../reference/glossary.md").split())
    assert "(../bench/results/throughput/timeline_" in said
    assert (
        "*Minute 8 on a simulated GPU, with the [workload](../reference/glossary.md) `hover`, the one of 2 that has most "
        "in flight." in said
    )
    assert (
        "the defaults have 20 to 40 of 64 requests in flight, by workload, synchronous gepa 4 to 4, and its parallel"
        in said
    )
    assert "parallel proposals (4x4) 30 to 30.*" in said
    given(monkeypatch, throughput=throughput(most="aime"))
    assert "with the [workload](docs/reference/glossary.md) `hover`. In whole runs" in " ".join(
        picture("", "docs/reference/glossary.md").split()
    )


def test_what_the_merging_of_edits_is_worth_is_told_by_world(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = [
        {"world": world, "method": method, "time_to_sync_held_out": {"median": median}}
        for method, medians in {"one validation for each edit": (0.2, 0.6), "default": (0.1, 0.3)}.items()
        for world, median in zip(("normal", "narrow"), medians, strict=True)
    ]
    others = [
        {**row, "method": row["method"].replace("one validation for each edit", "combee 10")}
        | {"tokens_per_minute_ratio": {"mean": 1.0 if row["method"] != "default" else 4.0}}
        for row in rows
    ]
    without: dict[str, object] = {"method": "default", "rows": rows}
    given(monkeypatch, quality_without=without)
    said = " ".join(figures().split())
    assert "the defaults take 0.20 to 0.60 of our lockstep's time, by world, instead of 0.10 to 0.30." in said
    settings = {"worlds": {"normal": {}, "narrow": {}}, "seeds": [0, 1]}
    said = " ".join(gains.merging(without, {"method": "default", "rows": others, "settings": settings}, "").split())
    assert "is sooner than the defaults in 0 of 2 comparisons, cheaper in 2." in said
    others[1]["time_to_sync_held_out"] = {"median": 2.0}
    others[0]["time_to_sync_held_out"] = {"median": 0.05}
    said = " ".join(gains.merging(without, {"method": "default", "rows": others, "settings": settings}, "").split())
    assert "in 1 of 2 comparisons, cheaper in 1, never there in `narrow`." in said
    given(monkeypatch, quality_without={"method": "default", "rows": rows[2:]})
    assert "Without merging" not in figures()


def on_gpu(workload: str, **rates: float) -> dict[str, object]:
    """A result of one run of each of these methods, in which each counted 16 proposals."""
    rows = [
        {
            "workload": workload,
            "method": method,
            "proposals_per_min": rate,
            "mean_in_flight": 4.0,
            "values": {"proposals_per_min": [rate], "proposals": [16]},
        }
        for method, rate in rates.items()
    ]
    settings = {"model": None, "minutes": 1.0, "repeats": 1, "concurrency": 64}
    return {"rows": rows, "settings": settings, "machine": {"gpu": "H100, 580.1"}, "commit": "abc"}


def test_parallel_proposals_are_counted_against_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [
        {"method": method, "concurrency": most, "measured": {"proposals_per_min": rate}}
        for method, rates in {"stream": (9.0, 9.0), "gepa_pxn_4x4": (10.0, 5.0)}.items()
        for most, rate in zip((4, 16), rates, strict=True)
    ]
    given(
        monkeypatch,
        prediction={**(read("prediction") or {}), "runs": runs},
        gpu=on_gpu("hover", stream=9.0, gepa_pxn_4x4=8.0),
        gpu_hotpotqa=on_gpu("hotpotqa", stream=9.0, gepa_pxn_4x4=20.0),
        gpu_aime=on_gpu("aime", stream=9.0, gepa_sync=20.0),
    )
    said = " ".join(figures().split())
    assert "the defaults in 2 of 4 comparisons on real servers." in said
    assert (
        "| `hover`, one run of one minute ([page](docs/benchmarks/gpu.md)) | – | 8.0 (16, one round) | 9.0 (16) |"
        in said
    )
