"""The pages of results on a real GPU, and what other pages take from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import pytest

from bench._lib.text import Content
from bench.gpu.deviations import deviations, gain, gains, goals, leads
from bench.gpu.scores import ends
from bench.gpu.section import answer, beside, filled, rates, section

Run = Mapping[str, float]
"""What differs from `USUAL` in a run."""
Worths = Sequence[tuple[float, float]]
"""What the best candidate of a run was worth, by when it was there, in seconds."""
USUAL: Run = {
    "proposals_per_min": 4.0,
    "output_tokens_per_s": 900.0,
    "mean_in_flight": 3.5,
    "validations_per_min": 2.0,
    "accepted_per_min": 1.0,
    "best_score": 0.5,
    "proposals": 4,
    "calls": 100,
}


def row(method: str, *runs: Run, worths: Sequence[Worths] = (), workload: str = "hover") -> Content:
    """The row of a result for these runs; of candidates, each is there after as many calls as seconds."""
    values = {name: [run.get(name, usual) for run in runs] for name, usual in USUAL.items()}
    held_out = [[(seconds, seconds, 1000 + 100 * seconds, worth) for seconds, worth in run] for run in worths]
    of_gpu = [{"utilization_percent": 91.2, "watts": 600.0}, *[None] * (len(runs) - 1)]
    means = {name: fmean(each) for name, each in values.items()}
    return {"workload": workload, "method": method, **means, "values": values, "held_out": held_out, "gpu": of_gpu}


def result(*rows: Content, repeats: int = 1, model: str | None = None, **more: object) -> Content:
    settings = {"engine": "vllm", "model": model, "shape": "tiny", "minutes": 2.5, "concurrency": 64}
    return {
        "rows": list(rows),
        "settings": {**settings, "repeats": repeats, "predicted_before": True},
        "machine": {"gpu": "H100, 580.1"},
        "check": None,
        **more,
    }


def predicted(profile: str, method: str, **values: Sequence[float]) -> Content:
    return {
        "profile": profile,
        "workload": "hover",
        "method": method,
        "values": {name: [usual] for name, usual in USUAL.items()} | values,
    }


def test_there_is_a_row_for_each_method() -> None:
    content = result(
        row("gepa_sync", {}),
        row("stream", {"proposals_per_min": 20.0, "proposals": 80, "calls": 310}),
        row("ceiling", {"output_tokens_per_s": 1800.0, "proposals": 0}),
    )
    made = section(content)
    assert "| hover, gepa_sync | 4.0 | 900.0 | 3.5 | 2.0 | 1.0 | 100 | 0.50 | 4 | 91 | 600 |" in made
    assert "| hover, stream | 20.0 | 900.0 | 3.5 | 2.0 | 1.0 | 310 | 0.50 | 80 | 91 | 600 |" in made
    assert "those of `gepa_sync` come from fewer" in " ".join(made.split())
    assert "`stream` is the defaults of flowevolve" in made
    assert "shape `tiny` with random weights" in made
    assert "`plain` is" not in made, "it was not run"
    assert "The simulator beside it" not in made
    assert "worth on rows held out" not in made
    assert answer(content) == "`gepa_sync` 4.0, `stream` 20.0, on one H100"
    assert list(filled(content, "stream")) == ["3.5 of 64 (`hover`)"]


def test_rates_have_their_range_and_how_many_proposals_they_are_of() -> None:
    runs: list[Run] = [{"proposals_per_min": 20.0, "proposals": 16}, {"proposals_per_min": 10.0, "proposals": 8}]
    none: Run = {"proposals_per_min": 0.0, "proposals": 0}
    results = {
        " (page)": result(row("gepa_pxn_4x4", runs[0]), row("stream", runs[0])),
        "": result(
            row("gepa_pxn_4x4", *runs), row("gepa_pxn_4x4", runs[0], none, workload="aime"), repeats=2, model="m"
        ),
    }
    title, _, *lines = rates(results).splitlines()
    assert title.startswith("| Proposals a minute on one H100 (random weights, simulated words), and how many")
    assert lines == [
        "| `hover`, one run of 2.5 minutes (page) | – | 20.0 (16, one round) | 20.0 (16) | – | – | – |",
        "| `hover`, 2 runs of 2.5 minutes | – | 15.0 (10.0 to 20.0; 24, one round each) | – | – | – | – |",
        "| `aime`, 2 runs of 2.5 minutes | – | 10.0 (0.0 to 20.0; 16) | – | – | – | – |",
    ]
    again = {**results[" (page)"], "run_before": {"stream": 17.5}}
    assert rates({"": again}).endswith("| – | 20.0 (16, one round) | 20.0 (16; 17.5 in a run before) | – | – | – |")
    assert rates({"": results[""]}).startswith("| Proposals a minute on one H100, and how many were counted |")


SYNC: Sequence[Worths] = [[(0, 0.2), (90, 0.4)], [(0, 0.2), (60, 0.6)]]
STREAM: Sequence[Worths] = [[(0, 0.2), (12, 0.4), (45, 0.7)], [(0, 0.2), (75, 0.5)]]


def test_scores_are_compared_run_by_run() -> None:
    content = result(
        row("gepa_sync", {}, {}, worths=SYNC),
        row("stream", {"calls": 50}, {"calls": 80}, worths=STREAM),
        row("plain", {}, {}, worths=[[(0, 0.2)]] * 2),
        repeats=2,
    )
    made = section(content)
    assert "| hover, gepa_sync | 0.20 | 0.20 | 0.40 | 0.50 | 0.50 | 0.50 | – | – |" in made
    # gepa's runs end with 0.4 after 90 s and 0.6 after 60 s: 12 / 90, 75 / 90, 45 / 60, and never
    assert "| 0.79 (0.13–never), sooner in 3 of 4 pairs | +0.25 (0.20, 0.70 less 0.20, 0.20) |" in made
    assert "| never, sooner in 0 of 4 pairs | -0.30 (0.20, 0.20 less 0.40, 0.60) |" in made
    assert "means of 2 runs, which are few" in made
    assert ends([content]) == (
        "With simulated words at that GPU's speed, the defaults end 2 runs of 2.5 minutes with `hover` at 0.60 (0.50 to "
        "0.70) on rows held out, synchronous gepa at 0.50 (0.40 to 0.60). Of gepa's time to its last score they take "
        "0.79 (0.13–never), sooner in 3 of 4 pairs, and of its tokens 0.82 (0.22–never), which may be chance."
    )
    assert rates({"": content}).endswith("| 0.79 (0.13–never), sooner in 3 of 4 pairs |")
    (told,) = beside({"gpu.md": content}, "the defaults")
    assert told.endswith(
        " Of synchronous gepa's time to its last held-out score, with simulated words, they took: `hover` 0.79 "
        "(0.13–never), sooner in 3 of 4 pairs."
    )


def test_a_single_pair_of_runs_is_said_to_be_one_and_stands_beside_the_run_before() -> None:
    alone = result(row("gepa_sync", {}, worths=SYNC[:1]), row("stream", {}, worths=STREAM[:1]))
    assert "With one run of each method none of these differences is sure." in section(alone)
    again = {**alone, "time_run_before": 0.974}
    assert rates({"": again}).endswith("| 0.13 (one pair of runs; 0.97 in a run before) |")
    assert ends([again]) == (
        "With simulated words at that GPU's speed, the defaults end one run of 2.5 minutes with `hover` at 0.70 on rows "
        "held out, synchronous gepa at 0.40. Of gepa's time to its last score they take 0.13 (one pair of runs; 0.97 in "
        "a run before), and of its tokens 0.22, which may be chance."
    )


def test_runs_without_known_scores_say_nothing_of_them() -> None:
    trained = result(row("gepa_sync", {}, {}), row("stream", {}, {}), repeats=2, model="m")
    without = result(row("stream", {}, {}, worths=STREAM), repeats=2)
    assert ends([trained, without]) == ""
    assert rates({"": without}).endswith("| – |")
    assert "Of synchronous gepa's time" not in "".join(beside({"gpu.md": trained}, "the defaults"))
    assert "| hover, stream | 0.20 | " in section(without)


def test_what_was_predicted_stands_beside_what_was_measured() -> None:
    content = result(
        row("gepa_sync", {"best_score": 0.5}, {"best_score": 0.6}),
        row(
            "stream",
            {"proposals_per_min": 18.0, "proposals": 45, "best_score": 0.75},
            {"proposals_per_min": 22.0, "proposals": 55, "best_score": 0.65},
        ),
        repeats=2,
        predicted=[
            predicted("measured", "gepa_sync", proposals_per_min=[5.0, 3.0], best_score=[0.4, 0.5]),
            predicted("measured", "stream", proposals_per_min=[26.0, 22.0], best_score=[0.8, 0.6]),
            predicted("shipped", "gepa_sync"),
            predicted("shipped", "stream", proposals_per_min=[10.0]),
        ],
    )
    made = section(content)
    assert "committed before these runs, in\n`bench/gpu/before_hover.json`" in made
    assert "| hover, gepa_sync | proposals/min | 4.0 | 4.0 (3.0 to 5.0) | +0% | 4.0 |" in made
    assert "| hover, stream | proposals/min | 20.0 | 24.0 (22.0 to 26.0) | +20%, outside the range | 10.0 |" in made
    assert deviations(content, "measured")["proposals_per_min"] == pytest.approx((0.1, 0.2))
    assert gains(content) == (
        "The defaults make 6.0 times synchronous gepa's proposals as predicted, and 5.0 times as measured."
    )
    assert gain(content, "measured") == "6.0 (measured 5.0, 100 to 8)"
    assert goals(content)["prediction of proposals a minute"], "10 % in the median and 20 % at worst"
    assert "The goal is\n15 % in the median and 30 % at worst, and is met." in made
    again = {**content, "run_before": {"gepa_sync": 2.0, "stream": 9.0}}
    assert gain(again, "measured") == "6.0 (measured 5.0, 100 to 8; in a run before 4.5)"
    assert gain(content, "shipped") == "2.5 (measured 5.0, 100 to 8)"
    assert leads(content) == (
        " In the best validation score on one H100 with `hover` the defaults were to be 0.25 ahead of synchronous gepa "
        "(0.10 to 0.40, by seed), and were 0.15 ahead, in the mean of 2 runs (0.05 to 0.25, by run)."
    )
    content["rows"][1]["values"]["best_score"] = [0.5, 0.6]
    assert "were 0.00 ahead, in the mean of 2 runs (0.00 to 0.00, by run), so this prediction failed." in leads(content)
    assert leads({**content, "before": " So it was."}).endswith("so this prediction failed. So it was.")
    content["rows"][0]["values"]["proposals_per_min"] = [0.0, 0.0]
    assert gains(content) == "", "nothing can be told beside none"
