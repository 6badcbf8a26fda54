"""What a recording comes to, how methods are compared, and the page that is made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bench._lib.methods.figures import Figures, figures
from bench._lib.methods.runs import Run
from bench._lib.methods.workloads import WORKLOADS, rows_like
from bench._lib.time_to_score import Row, Rows, time_to_score
from bench.throughput.comparisons import as_interval
from bench.throughput.measurements import Place, Plan
from bench.throughput.notes import same_way
from bench.throughput.results import content, described, served
from bench.throughput.rows import beside, over_estimated_pxn, score_at_equal, values
from bench.throughput.section import answer, section
from bench.throughput.tables import SPENT
from bench.throughput.windows import report
from tests.support.recordings import run, span


def rows_of(**methods: Row) -> Rows:
    return {("aime", method): row for method, row in methods.items()}


def test_of_a_file_without_values_two_repeats_are_their_range() -> None:
    assert values({"values": {"x": [3, 1, 2]}, "range": {"x": [1, 3]}}, "x") == [3, 1, 2]
    assert values({"range": {"x": [1, 3]}}, "x") == [1, 3]


def test_a_figure_beside_another_methods() -> None:
    rows = rows_of(stream={"range": {"x": [4, 8]}}, gepa_sync={"range": {"x": [2, 2]}}, none={"range": {"x": [0, 0]}})
    found = beside(rows, "stream", ["gepa_sync"], "x")
    assert found is not None
    assert (found.mean, found.low, found.high) == pytest.approx((3, 0, math.inf)), (
        "one workload tells nothing of others"
    )
    assert as_interval(found) == "3.00"
    assert as_interval(beside(rows, "none", ["stream"], "x")) == "none on aime"
    assert beside(rows, "stream", ["none"], "x") is None
    assert beside(rows, "stream", ["absent"], "x") is None


def pxn(proposals: float, tokens: float) -> Row:
    figures = {"proposals_per_min": proposals, "output_tokens_per_s": tokens}
    return {**figures, "values": {name: [value] for name, value in figures.items()}}


def test_a_width_without_a_whole_round_is_estimated_by_its_tokens() -> None:
    rows = rows_of(stream=pxn(60, 0), gepa_pxn_2x2=pxn(5, 50), gepa_pxn_4x4=pxn(10, 100), gepa_pxn_8x8=pxn(0, 200))
    found = over_estimated_pxn(rows, "stream")
    assert found is not None
    assert found.mean == pytest.approx(60 / 20)
    assert over_estimated_pxn({key: row for key, row in rows.items() if key[1] != "gepa_pxn_8x8"}, "stream") is None
    counted = {**rows, ("aime", "gepa_pxn_8x8"): pxn(20, 200)}
    assert over_estimated_pxn(counted, "stream") is None, "what was counted needs no estimate"


def curves(*each: Sequence[tuple[float, float]]) -> Row:
    return {"curves": each}


def spending(*runs: Sequence[tuple[float, int, int, float]], calls: int, tokens: int) -> Row:
    spent = {"calls": [calls] * len(runs), "tokens": [tokens] * len(runs)}
    return {"held_out": runs, "values": spent, "curves": [[(0.0, 0.0)] for _ in runs]}


def test_what_counts_is_worth_on_rows_held_out_where_that_is_known() -> None:
    rows = rows_of(
        gepa_sync=spending([(0, 20, 10, 0.1), (100, 400, 900, 0.4)], calls=500, tokens=1000),
        stream=spending(
            [(0, 20, 10, 0.1), (20, 300, 2000, 0.5), (50, 600, 3000, 0.7)],
            [(0, 20, 10, 0.1), (40, 200, 800, 0.3)],
            calls=800,
            tokens=4000,
        ),
    )
    timed = time_to_score(rows, "stream", ["gepa_sync"])
    assert (timed.by_pair, timed.reached) == ([0.2, math.inf], 1)
    by_calls, by_tokens = (score_at_equal(rows, "stream", spent) for spent in SPENT)
    assert by_calls is not None
    assert by_calls.mean == pytest.approx((0.5 + 0.3) / 2 - 0.4)
    assert by_tokens is not None
    assert by_tokens.mean == pytest.approx((0.1 + 0.3) / 2 - 0.4)
    assert score_at_equal(rows_of(gepa_sync=curves([]), stream=curves([])), "stream", "calls") is None


def result(place: Place, **methods: int) -> dict[str, object]:
    found: dict[tuple[str, str], list[tuple[Run, Figures]]] = {}
    for method, proposals in methods.items():
        spans = [span(n, n + 1, 50, "reflection") for n in range(proposals)] + [span(0, 90, 900)]
        one = replace(run(*spans, method=method), fresh=place.url is None)
        found["aime", method] = [(one, figures(one))] * 2
    plan = Plan(list(methods), ["aime"], repeats=2, virtual_repeats=3, seconds=600, concurrency=64, seed=0, processes=1)
    return content({place: found}, plan, command="python -m bench.throughput")


@pytest.fixture
def made() -> dict[str, object]:
    return result(Place("qwen3-8b-h100", "vllm"), gepa_sync=2, gepa_pxn_4x4=8, stream=12, ceiling=0)


def test_the_page_has_a_verdict_for_every_goal(made: dict[str, object]) -> None:
    page = section(made)
    assert "| proposals/min, 6 times synchronous gepa's | vllm | 6.00 | met |" in page
    assert "| proposals/min, more than gepa's best PxN width | vllm | 1.50 | met |" in page
    assert (
        "| time to the validation score of gepa's best PxN width, less than its own | vllm | – | not measured |" in page
    )


def test_the_page_says_how_often_what_ran_in_real_time_was_run(made: dict[str, object]) -> None:
    assert "(repeats: 2)" in section(made)
    rows = made["rows"]
    assert isinstance(rows, list)
    by_method = {row["method"]: row for row in rows}
    by_method["gepa_sync"]["curves"] *= 3
    assert "(repeats: 2, and 6 of synchronous gepa)" in section(made).replace("\n", " ")
    wide = by_method["gepa_pxn_4x4"]
    rows.append({**wide, "method": "gepa_pxn_2x2", "curves": [*wide["curves"], wide["curves"][0]]})
    assert "(repeats: 2 to 3, and 6 of synchronous gepa)" in section(made).replace("\n", " ")


def test_a_window_with_too_few_proposals_is_named() -> None:
    made = result(Place("qwen3-8b-h100", "vllm"), gepa_sync=10, stream=60, ceiling=0)
    rows = made["rows"]
    assert isinstance(rows, list)
    assert report(made) == "vllm, aime, gepa_sync: 48 proposals in the shortest window, not 50"
    assert "| gepa 0.1.4, synchronous | 48 (*of 50*) |" in section(made)
    (stream,) = (row for row in rows if row["method"] == "stream")
    stream["values"]["flows"] = [64, 100]
    assert report(made).endswith("stream: 288 proposals in the shortest window, not 300")
    assert "All windows" in report(result(Place("qwen3-8b-h100", "vllm"), gepa_sync=11, stream=60, ceiling=0))


def test_the_page_says_what_a_real_server_was_asked() -> None:
    place = Place("vllm-cpu", "vllm_cpu", url="http://127.0.0.1:1/v1", model="m", max_tokens=48)
    page = section(result(place, gepa_sync=2, gepa_pxn_4x4=8, stream=8, ceiling=0))
    assert "| proposals/min, 5 times synchronous gepa's | vllm_cpu | 4.00 | missed |" in page
    assert "48 tokens at most" in page
    assert "Prompts have 0.125 times the text" in page
    assert "not reset between methods" in page
    assert "Not run here: gepa, PxN 2x2;" in page
    assert "qwen3-8b-h100" not in page


def test_on_a_real_server_the_answer_says_how_few_it_rests_on() -> None:
    place = Place("vllm-cpu", "vllm_cpu", url="http://127.0.0.1:1/v1", model="m", max_tokens=48)
    few = answer(result(place, gepa_sync=2, stream=8, ceiling=0))
    assert few == (
        "4.0 (`aime`, none of them validated) times the proposals and 1.3 times the output tokens, 2 runs of each, with "
        "too few proposals to rely on; how soon it has gepa's last score can't be told"
    )
    assert "too few" not in answer(result(place, gepa_sync=11, stream=60, ceiling=0))
    batches = answer(result(place, gepa_sync=11, gepa_pxn_4x4=30, stream=60, ceiling=0))
    assert "2.0 times its best width's" in batches


def test_that_proposals_were_validated_goes_without_saying() -> None:
    place = Place("vllm-cpu", "vllm_cpu", url="http://127.0.0.1:1/v1", model="m", max_tokens=48)
    made = result(place, gepa_sync=2, stream=8, ceiling=0)
    rows = made["rows"]
    assert isinstance(rows, list)
    for row in rows:
        row["stopped_per_min"] = 1.0
    assert answer(made).startswith("4.0 (`aime`) times the proposals")


def test_the_page_says_whether_the_server_was_what_limited_the_stream() -> None:
    place = Place("vllm-cpu", "vllm_cpu", url="http://127.0.0.1:1/v1", model="m", max_tokens=48)
    made = result(place, gepa_sync=2, stream=8, ceiling=0)
    rows = made["rows"]
    assert isinstance(rows, list)
    written = {"gepa_sync": 100.0, "stream": 150.0, "ceiling": 200.0}
    for row in rows:
        row["output_tokens_per_s"] = written[row["method"]]
    page = " ".join(section(made).split())
    assert "A load without end gets 2.0 to 2.0 times the output tokens/s of synchronous gepa." in page
    assert (
        "writes 0.75 to 0.75 of the tokens of load without end. So a full server would write 1.33 to 1.33 times" in page
    )
    assert "The runs last 10 minutes, in which 2 proposals of synchronous gepa were counted." in page


def test_on_a_real_server_a_time_to_a_score_of_few_pairs_is_told_as_what_may_be_chance() -> None:
    place = Place("vllm-cpu", "vllm_cpu", url="http://127.0.0.1:1/v1", model="m", max_tokens=48)
    made = result(place, gepa_sync=2, stream=8, ceiling=0)
    rows = made["rows"]
    assert isinstance(rows, list)
    for row in rows:
        row["curves"] = [[(0.0, 0.1), (50.0 if row["method"] == "stream" else 100.0, 0.5)]]
    said = answer(made)
    assert said.endswith(
        "gepa's last validation score after 0.50 (`aime`) of its time, which may be chance in 1 pair of runs"
    )


def test_goals_beside_parallel_proposals_that_were_not_run_are_told_apart_from_those_that_count() -> None:
    place = Place("vllm-cpu", "vllm_cpu", url="http://127.0.0.1:1/v1", model="m", max_tokens=48)
    assert "2 more goals, against gepa's parallel proposals" in section(result(place, gepa_sync=2, stream=8, ceiling=0))
    assert "more goals" not in section(result(place, gepa_sync=2, gepa_pxn_4x4=8, stream=8, ceiling=0))
    assert "more goals" not in section(result(Place("qwen3-8b-h100", "vllm"), gepa_sync=2, stream=12, ceiling=0))


def test_how_long_servers_waited_for_a_core_is_told_for_each_method() -> None:
    made = result(Place("qwen3-8b-h100", "vllm"), gepa_sync=2, gepa_pxn_4x4=8, stream=12, stream_real=11, ceiling=0)
    rows = made["rows"]
    assert isinstance(rows, list)
    shares = {"gepa_sync": [0.01, 0.03], "gepa_pxn_4x4": [0.1, 0.2]}
    for row in rows:
        row["values"]["held_up_share"] = shares.get(row["method"], [0.0, 0.0])
    page = " ".join(section(made).split())
    assert "for this part of the time: gepa 0.1.4, synchronous 2.0 %; gepa, PxN 4x4 15.0 %. On the virtual" in page


def test_the_page_says_what_our_lockstep_does_otherwise_than_gepa() -> None:
    made = result(Place("qwen3-8b-h100", "vllm"), gepa_sync=2, stream=12, lockstep=3, ceiling=0)
    rows = made["rows"]
    assert isinstance(rows, list)
    for row in rows:
        row["validations_per_min"] = row["proposals_per_min"] * (0.5 if row["method"] == "gepa_sync" else 0.25)
    page = " ".join(section(made).split())
    assert "validates 0.25 (0.25 to 0.25, by workload and server) of its proposals, gepa 0.50 (" in page
    assert "go the same way on both" not in page, "there is but one server"


def test_the_page_says_how_many_of_gepas_runs_are_alike_on_both_servers() -> None:
    servers = {
        "vllm": rows_of(
            gepa_sync=curves([(0, 0.1), (5, 0.4)], [(0, 0.1), (5, 0.4)]),
        ),
        "api": rows_of(gepa_sync=curves([(0, 0.1), (9, 0.4), (20, 0.5)], [(0, 0.1), (9, 0.3)])),
    }
    assert same_way(servers) == " Of synchronous gepa's own runs 1 of 2 on `aime` go the same way on both."


def test_the_page_says_which_score_times_are_to(made: dict[str, object]) -> None:
    validated = section(made)
    assert "has no scores on rows held out" in validated
    assert "These are times to validation scores, in pairs" in validated
    rows = made["rows"]
    assert isinstance(rows, list)
    for row in rows:
        row["held_out"] = [[(0.0, 0, 0, 0.1)], [(0.0, 0, 0, 0.1)]]
    held_out = section(made)
    assert "has no scores on rows held out" not in held_out
    assert "These are times to held-out scores, in pairs" in held_out


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
    assert found["plain_vs_gepa_sync_vllm"] is None
    assert made["configurations"] == {"stream": {"preset": "default"}}
    assert found["saturation_vllm"] == pytest.approx((900 + 600) / 900)
    assert [(row["server"], row["workload"], row["method"]) for row in rows] == [
        ("qwen3-8b-h100", "aime", method) for method in sorted(("gepa_sync", "gepa_pxn_4x4", "stream", "ceiling"))
    ]


def test_a_workload_is_described_as_it_was_run() -> None:
    simulated = [Place("qwen3-8b-h100", "vllm")]
    real = [Place("vllm-cpu", "vllm_cpu", url="http://127.0.0.1:1/v1", model="m", max_tokens=48)]
    assert described("hover", simulated)["prompt_tokens_median"] == 954
    assert described("hover", simulated)["output_tokens_median"] == {"qwen3-8b-h100": 110, "gpt-4o-mini-api": 50}
    assert described("hover", real)["prompt_tokens_median"] == 954 / 8
    assert described("hover", real)["output_tokens_median"] is None
    plan = Plan(["gepa_sync", "stream"], ["aime"], 1, 1, 60.0, 64, seed=0, processes=1)
    assert served(real, plan) == {
        "model": "m",
        "max_tokens": 48,
        "text_share": 1 / 8,
        "reflections_fenced": True,
        "same_mix": True,
    }
    assert served(simulated, plan) == {"speeds": {"aime": {"qwen3-8b-h100": 30, "gpt-4o-mini-api": 30}}}


def test_the_page_shows_every_method_and_our_settings(made: dict[str, object]) -> None:
    page = section(made)
    assert page.startswith("# Throughput\n")
    assert "| gepa 0.1.4, synchronous | 2 | 1.20 |" in page
    assert "| `stream` over gepa's best PxN width | 1.50 |" in page
    assert 'preset = "default"' in page
    assert "another configuration" not in page


def test_the_first_goal_is_the_time_to_synchronous_gepas_last_score() -> None:
    made = result(Place("qwen3-8b-h100", "vllm"), gepa_sync=2, stream=12, ceiling=0)
    rows = made["rows"]
    assert isinstance(rows, list)
    found = {
        "gepa_sync": [[(0.0, 0.1), (100.0, 0.5)]],
        "stream": [[(0.0, 0.1), (20.0, 0.6)], [(0.0, 0.1), (90.0, 0.5)]],
    }
    for row in rows:
        row["curves"] = found.get(row["method"], [[(0.0, 0.0)]])
    assert (
        "of its own in the median, reached in all pairs | vllm | 0.55 (0.20–0.90), reached in 2 of 2 pairs | missed"
        in (section(made))
    )
    assert answer(made) == (
        "after 0.55 (`vllm`) of its time (medians); 0 of 2 runs miss a score; 6.0 times gepa's proposals; 1 of 3 goals missed"
    )
    both = "0.55 (0.20–0.90), reached in 2 of 2 pairs"
    assert f"| vllm | aime | 20 | {both} | {both} |" in section(made)
    found["stream"][1] = [(0.0, 0.1), (20.0, 0.49)]
    some, most = "never (0.20–never), reached in 1 of 2 pairs", "0.20, reached in 2 of 2 pairs"
    assert f"| vllm | aime | 20 | {some} | {most} |" in section(made)
    assert answer(made).startswith("after never (`vllm`) of its time (medians); 1 of 2 runs miss a score; ")


def test_tokens_and_what_became_of_the_scores_stand_beside_times() -> None:
    made = result(Place("qwen3-8b-h100", "vllm"), gepa_sync=2, stream=12, plain=1, ceiling=0)
    rows = made["rows"]
    assert isinstance(rows, list)
    (other,) = (row for row in rows if row["method"] == "plain")
    other["method"] = "turbogepa"  # which is not installed here
    seed = (0.0, 20, 10, 0.1)
    found = {
        "gepa_sync": [seed, (100.0, 400, 900, 0.4)],
        "stream": [seed, (20.0, 300, 1800, 0.5), (30.0, 310, 2000, 0.3)],
    }
    for row in rows:
        row["held_out"] = [found.get(row["method"], [seed])]
    page = " ".join(section(made).split())
    assert "| vllm | ours, `stream` | 0.20, reached in 1 of 1 pairs | 0.20, reached in 1 of 1 pairs | 2.00 | " in page
    assert "with `stream` it was in 1 of 1 pairs that have it (vllm; at the end in 1)." in page
    assert "| vllm | ours, `stream` | 0.20 | never | 2.00 | never | 1 of 1 | 1 | 1 |" in page, "of what is lost again"
    assert "| vllm | gepa 0.1.4, synchronous | 1.00 | 1.00 | 1.00 | 1.00 | 1 of 1 | 0 | 0 |" in page
    assert "Here it is the validation rows, 20 by workload, so" in page
    assert "less synchronous gepa's, at equal tokens | 0.02 | 0.05 | 0.1 | 0.2 | 0.3 | 0.5 | 1 |" in page
    assert "| vllm | +0.000 | +0.000 | +0.000 | +0.000 | +0.000 | +0.000 | -0.300 |" in page
    assert " on these and 0.10 to 0.10 on rows held out. So its times" in page


def test_each_workload_has_the_times_to_gepas_last_score_and_to_that_of_its_best_width() -> None:
    made = result(Place("qwen3-8b-h100", "vllm"), gepa_sync=2, gepa_pxn_2x2=4, gepa_pxn_4x4=8, stream=12, ceiling=0)
    ends = {
        "gepa_sync": (100.0, 0.5),
        "gepa_pxn_2x2": (40.0, 0.6),
        "gepa_pxn_4x4": (20.0, 0.599),
        "stream": (50.0, 0.7),
    }
    rows = made["rows"]
    assert isinstance(rows, list)
    for row in rows:
        if row["method"] in ends:
            seconds, worth = ends[row["method"]]
            row["held_out"] = [[[0.0, 1, 1, 0.1], [seconds, 9, 9, worth]]] * 2
    assert (
        "| vllm | aime | 20 | 0.50, reached in 4 of 4 pairs | 0.50, reached in 4 of 4 pairs | "
        "2.50, reached in 8 of 8 pairs |" in section(made)
    ), "scores of both widths are to be reached, as they can't be told apart"


def test_two_workloads_share_rows_as_the_page_says() -> None:
    hotpotqa, hover = (
        [
            {name: value for name, value in row.items() if name != "key"}
            for row in rows_like(each.train + each.validation)
        ]
        for each in (WORKLOADS["hotpotqa"], WORKLOADS["hover"])
    )
    assert sum(row in hover for row in hotpotqa) > len(hotpotqa) / 2
    validated = hover[WORKLOADS["hover"].train :]
    assert all(row in validated for row in hotpotqa[WORKLOADS["hotpotqa"].train :])


def test_several_runs_of_gepa_are_counted_and_each_is_beside_all_of_ours() -> None:
    made = result(Place("qwen3-8b-h100", "vllm"), gepa_sync=2, gepa_pxn_4x4=8, stream=12, lockstep=3, ceiling=0)
    rows = made["rows"]
    assert isinstance(rows, list)
    reaching = [[(0.0, 0.1), (seconds, 0.5)] for seconds in (100.0, 200.0, 400.0)]
    for row in rows:
        several = {"gepa_sync": reaching, "stream": reaching[:2]}
        row["curves"] = several.get(row["method"], reaching[:1])
    assert answer(made).startswith("after 0.75 (`vllm`) of its time (medians); 0 of 2 runs miss a score; ")
    page = " ".join(section(made).split())
    assert "| vllm | aime | 20 | 0.75 (0.25–2.00), reached in 6 of 6 pairs |" in page
    assert (
        "Runs on each workload: 3 of synchronous gepa, 1 to 2 of each method of ours, 1 of each other method." in page
    )


def test_gains_across_clocks_come_with_the_gain_on_one_clock() -> None:
    place = Place("qwen3-8b-h100", "vllm")
    made = result(place, gepa_sync=2, stream=12, lockstep=3, ceiling=0)
    assert "6.0 times gepa's proposals; 4.0 times our lockstep's" in answer(made)


def test_on_an_api_the_stream_should_be_sooner_than_pxn_too() -> None:
    made = result(Place("gpt-4o-mini-api", "api"), gepa_sync=2, gepa_pxn_4x4=8, stream=12, ceiling=0)
    rows = made["rows"]
    assert isinstance(rows, list)
    for row in rows:
        row["curves"] = [[(0.0, 0.1), (150.0 if row["method"] == "stream" else 100.0, 0.5)]]
    goal = "of gepa's best PxN width, less than its own | api |"
    assert f"{goal} 1.50, reached in 1 of 1 pairs | missed |" in section(made)


def test_a_workload_is_said_to_be_no_data_set(made: dict[str, object]) -> None:
    page = section(made)
    assert page.index("none of its rows") < page.index("| server | method |")
    assert "| calls: one; lengths of prompts, 45 rows to train on: " in page
    assert "gepa itself validates on\n300 rows" in page
    assert "All repeats of a workload have the same rows" in page


def test_methods_on_both_clocks_stand_side_by_side() -> None:
    page = section(result(Place("qwen3-8b-h100", "vllm"), gepa_sync=2, stream=12, stream_real=11, ceiling=0))
    assert "| vllm | aime | ours, `stream` | 7.20 |" in page
    assert "| vllm | aime | ours, `stream`, in real time | 6.60 |" in page
