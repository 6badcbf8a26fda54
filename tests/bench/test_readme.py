"""README stays on one screen, and its figures are those of the files in bench/results."""

from __future__ import annotations

import re
from typing import Any

import pytest

import flowevolve as fe
from bench.quality import section as quality
from bench.report import age, baseline, beside_gepa, gains, overview, readme
from bench.report.merging import merging
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


def in_full(**results: dict[str, object]) -> str:
    """The page with all figures, made of these results and of the others in bench/results."""
    contents = {name: results.get(name) or read(name) or {} for name in beside_gepa.NEEDS}
    return " ".join(beside_gepa.page(contents).split())


def test_readme_has_the_figures_in_real_time_and_in_few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    content = throughput(most="hover")
    ends_with(content, "api", "aime", "stream_real", [[75.0, 400, 500, 0.5], [80.0, 450, 600, 0.3]])
    given(monkeypatch, throughput=content)
    said = " ".join(figures().split())
    assert (
        "reach the held-out score with which synchronous gepa (one proposal at a time) ends an hour after 0.75 of the "
        "time that gepa needs for it, with 0.50 of its tokens; to keep it to the end takes 0.75 to never of the time and "
        "0.50 to never of the tokens** (medians by workload, in real time)." in said
    )
    assert (
        "| the defaults | 0.75 (0.75) | 0.50 (0.50) | 0.75 (0.75 to never) | 0.50 (0.50 to never) | 0 of 8 (1) |"
        in said
    )
    assert "| gepa's parallel proposals, the soonest of 1 widths | 0.50 (0.50) | 1.00 (1.00) | 0.50 (0.50) |" in said
    assert "(PxN), 1.0 and 1.0 times as many as the defaults (GPU, API). In 0 of 4 comparisons" in said
    assert "keeps gepa's score sooner than the defaults in 2 of 4, for fewer tokens in 1." in said
    assert "less gepa's, is +0.400 (+0.400 to +0.400) on the GPU and" in said


def test_times_and_the_room_of_a_server_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, throughput=throughput(most="hover"))
    said = in_full(throughput=throughput(most="hover"))
    assert "an hour in 0.25 of gepa's time to it, for 0.50 of its tokens; to reach and keep it: never, never**" in said
    assert "(medians; in real time up to 0.75, 0.50)." in said
    assert "and each *workload* is the same made-up task, with a data set's calls" in said
    assert "against its own runs, in real time | 1.00 (1.00) | 1.00 (1.00) | 0 of 4 (0) | 1.00 (1.00) |" in said
    assert "on the virtual clock (our code takes no time) | 0.25 (never) | 0.50 (never) | 0 of 4 (4) | 0.25" in said
    assert "| the same, in real time | 0.75 (0.75) | 0.50 (0.50) | 0 of 4 (0) | 0.75 (0.75) | 0.50 (0.50) |" in said
    peer = "agentdescent with its merging, in real time | 0.60 to 0.90 (0.60 to 0.90) | 0.80 (0.80) | 0 of 4 (0) |"
    assert peer in said
    assert "the soonest of 1 widths, in real time | 0.50 (0.50) | 1.00 (1.00) | 0 of 4 (0) | 0.50 (0.50) |" in said
    assert (
        "Ranges are of workloads' medians (2 runs of each method; rows for validation: `aime` 20, `hover` 30)." in said
    )
    assert (
        "In real time 0 of 8 and 0 of 8 of the defaults' pairs that have the score lose it (0 and 0 for good), of "
        "agentdescent's 0 of 8 and 0 of 8 (0 and 0). [All figures]" in said
    )
    assert "A *pair* is a run beside one of synchronous gepa, 4 by workload and server." in said
    assert "(PxN): 1.0 and 1.0 times as many as the defaults (GPU, API; up to 1.0, 1.0), and more a minute" in said
    assert (
        "By medians the defaults have the best score of any width sooner than the soonest width in 4 of 4 comparisons, "
        "and 0 of their 8 runs miss it (in real time 0 and 0; agentdescent with its merging 0 and 0)." in said
    )
    assert (
        "In real time agentdescent with its merging (set for speed) first has gepa's score sooner than the defaults in 2 "
        "of 4 comparisons, for fewer tokens in none, and keeps it sooner in 2, for fewer in none. At equal tokens its "
        "score, less gepa's, is" in said
    )
    assert (
        "At equal tokens the held-out score of the defaults, less gepa's, is +0.400 (+0.400 to +0.400) on the GPU and "
        "+0.400 (+0.400 to +0.400) on the API; 8 of 8 runs of the defaults and 0 of 8 of gepa's are then within 0.012 of "
        "the highest score of any run, 0.500." in said
    )
    said = " ".join(readme.room().split())
    assert "a simulated GPU writes 0.10 of the tokens that it could write, and a simulated API 0.10" in said
    assert "with it these write 0.90 and 0.90 of what they could" in said


def ends_with(content: dict[str, object], server: str, workload: str, method: str, *runs: list[list[float]]) -> None:
    """Give the first runs of a row of `throughput` other candidates after the seed's."""
    rows = content["rows"]
    assert isinstance(rows, list)
    (found,) = (
        each for each in rows if (each["server"], each["workload"], each["method"]) == (server, workload, method)
    )
    found["held_out"] = [[found["held_out"][0][0], *run] for run in runs] + found["held_out"][len(runs) :]


def test_runs_that_never_have_a_score_are_counted_of_ours_and_of_the_peer() -> None:
    content = throughput(most="hover")
    never = [[50.0, 300, 500, 0.3]]
    ends_with(content, "gpu", "hover", "agentdescent_merging", never)
    ends_with(content, "api", "aime", "stream_real", never, never)
    said = overview.methods_beside_gepa(content, "presets.md")
    assert (
        "in real time | 0.60 to never (0.60 to never) | 0.80 to never (0.80 to never) | 1 of 4 (1) | 0.60 to 0.90 "
        in said
    )
    assert "| 0 of 4 (0) | 0.75 to never (0.75 to never) | 0.50 to never (0.50 to never) | 2 of 4 (2) |" in said


def test_the_gain_in_shorter_runs_stands_beside_that_in_whole_ones() -> None:
    content = throughput(most="hover")
    gepa = [[30.0, 100, 300, 0.2], [100.0, 400, 900, 0.3], [500.0, 450, 950, 0.45], [2000.0, 460, 1000, 0.5]]
    for server in ("gpu", "api"):
        for workload in ("aime", "hover"):
            ends_with(content, server, workload, "gepa_sync", gepa, gepa)
    said = " ".join(overview.lead(content).split())
    assert "after an hour in 0.01 of gepa's time" in said, "25 of 2000 s"
    assert "gepa's score of minute 10 takes 0.05 of gepa's time, that of minute 1 0.83." in said


def test_the_soonest_of_gepas_widths_is_found_on_each_workload() -> None:
    content = throughput(most="hover")
    rows = content["rows"]
    assert isinstance(rows, list)
    rows += [
        row(server, workload, "gepa_pxn_8x8", seconds=10.0 if (server, workload) == ("gpu", "aime") else 95.0)
        for server in ("gpu", "api")
        for workload in ("aime", "hover")
    ]
    for each in rows:
        if each["method"] == "gepa_pxn_8x8" and each["seconds"] == 10.0:
            each["held_out"] = [[[0.0, 20, 10, 0.1], [10.0, 400, 3000, 0.5]]] * 2
    assert (
        "the soonest of 2 widths, in real time | 0.10 to 0.50 (0.10 to 0.50) | 1.00 to 3.00 (1.00 to 3.00) | 0 of 4 (0) |"
        in overview.methods_beside_gepa(content, "presets.md")
    ), "its tokens are those of the width that is the soonest"
    said = " ".join(gains.parallel(content, "").split())
    assert "sooner than the soonest width in 3 of 4 comparisons, and 0 of their 8 runs miss it" in said


def test_scores_that_can_not_be_told_apart_from_a_near_one_are_near() -> None:
    content = throughput(most="hover")
    ends_with(content, "gpu", "aime", "gepa_sync", [[9.0, 90, 90, 0.4881]], [[9.0, 90, 90, 0.4879]])
    said = " ".join(gains.at_equal_tokens(content).split())
    assert "and 1 of 8 of gepa's are then within 0.012 of the highest score of any run, 0.500." in said


def test_the_tokens_to_our_lockstep_loops_score_are_told_with_the_worlds_where_they_are_more() -> None:
    def said(*figures: tuple[str, float, float]) -> str:
        rows = [
            {
                "world": world,
                "method": "default",
                "time_to_sync_held_out": {"median": time},
                "tokens_per_minute_ratio": {"mean": tokens},
            }
            for world, time, tokens in figures
        ]
        return quality.tokens_by_world({"method": "default", "rows": rows})

    assert said(("easy", 0.1, 4.0), ("normal", 0.2, 2.5), ("full", 0.3, 5.0)) == "0.40 to 0.50 (`full`: 1.50)"
    assert said(("full", 0.3, 5.0), ("never", 2.0, 1.0)) == "1.50 to never"


def test_our_lockstep_loop_is_told_beside_gepa_itself() -> None:
    content = throughput(most="hover")
    assert baseline.reached(content) == baseline.beside_gepa(content) == ""
    rows = content["rows"]
    assert isinstance(rows, list)
    rows += [row(server, "aime", "lockstep") for server in ("gpu", "api")]
    ends_with(content, "gpu", "aime", "lockstep", [[50.0, 300, 500, 0.3]])
    assert baseline.reached(content) == "6 of 8", "each of two runs is beside two of gepa's, on both servers"
    for each in rows:
        each["validations_per_min"] = each["proposals_per_min"] * (0.5 if each["method"] == "gepa_sync" else 0.25)
    said = " ".join(baseline.beside_gepa(content).split())
    assert (
        "it made 1.00 and 1.00 times gepa's proposals a minute, validated 0.25 of them where gepa validates 0.50, and had "
        "gepa's last score in 6 of 8 pairs of runs." in said
    )


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
        {
            "world": world,
            "method": method,
            "time_to_sync_held_out": {"median": median},
            "tokens_per_minute_ratio": {"mean": 4.0 if method == "default" else 3.0},
        }
        for method, medians in {"one validation for each edit": (0.2, 0.6), "default": (0.1, 0.3)}.items()
        for world, median in zip(("normal", "narrow"), medians, strict=True)
    ]
    others = [
        {**row, "method": row["method"].replace("one validation for each edit", "combee 10")}
        | {"tokens_per_minute_ratio": {"mean": 1.0 if row["method"] != "default" else 4.0}}
        for row in rows
    ]
    without: dict[str, object] = {"method": "default", "rows": rows}
    said = in_full(quality_without=without)
    assert (
        "the defaults take, in 2 worlds, 0.20 to 0.60 of our lockstep's time and about 0.60 to 1.80 of its tokens, "
        "instead of 0.10 to 0.30 and 0.40 to 1.20." in said
    )
    settings = {"worlds": {"normal": {}, "narrow": {}}, "seeds": [0, 1]}
    said = " ".join(merging(without, {"method": "default", "rows": others, "settings": settings}, "").split())
    assert "is sooner than the defaults in 0 of 2 comparisons, cheaper in 2." in said
    others[1]["time_to_sync_held_out"] = {"median": 2.0}
    others[0]["time_to_sync_held_out"] = {"median": 0.05}
    said = " ".join(merging(without, {"method": "default", "rows": others, "settings": settings}, "").split())
    assert "in 1 of 2 comparisons, cheaper in 1, never there in `narrow`." in said
    assert "Without merging" not in in_full(quality_without={"method": "default", "rows": rows[2:]})


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
    results = {
        "prediction": {**(read("prediction") or {}), "runs": runs},
        "gpu": on_gpu("hover", stream=9.0, gepa_pxn_4x4=8.0),
        "gpu_hotpotqa": on_gpu("hotpotqa", stream=9.0, gepa_pxn_4x4=20.0),
        "gpu_aime": on_gpu("aime", stream=9.0, gepa_sync=20.0),
    }
    monkeypatch.setattr(age, "marks", dict)
    said = in_full(**results)
    assert "and more a minute than these in 2 of 4 comparisons on real servers. By medians" in said
    assert (
        "**On a real GPU.** On one H100 the defaults made, for each proposal of synchronous gepa: "
        "[`hover`](gpu.md) –, [`hotpotqa`](gpu_hotpotqa.md) –, "
        "[`aime`](gpu_aime.md) 0.5 (16 to 16); and for each of its parallel ones (4x4; one round in each run, so this "
        "says little): 1.1, 0.5, –." in said
    )
    commit = (read("gpu") or {})["commit"]
    monkeypatch.setattr(age, "marks", lambda: {"gpu": age.Mark(commit, 1, "The default has changed.")})
    said = in_full(**results)
    assert "in 2 of 4 comparisons, some older, on real servers. By medians" in said
    assert "**On a real GPU.** On one H100 earlier defaults made, for each" in said
