"""The pages of benchmarks say what the files in bench/results say."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from bench._lib.text import between, commit, percent, provenance, ranged, table
from bench.gpu import section as gpu
from bench.gpu.deviations import leads, off
from bench.report.benches import BENCHES, Bench
from bench.report.page import PAGE, PAGES, command_of, missed_goals, pages
from bench.report.results import RESULTS, read


def test_the_pages_are_what_the_results_make() -> None:
    made = pages()
    assert {PAGE, *PAGES.glob("*.md")} == made.keys(), "remove the page of a bench that is gone"
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, "write it again: python -m bench.report"


def test_the_first_page_fits_a_screen_and_has_a_line_for_each_bench() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= len(BENCHES) + 50, "what stands around the table is short"
    assert "No capable model has confirmed" in lines[2]
    head = next(number for number, line in enumerate(lines) if line.startswith("| what was asked |"))
    rows = [line for line in lines[head + 2 :] if line.startswith("| ")]
    assert len(rows) == len(BENCHES)
    for bench, row in zip(BENCHES, rows, strict=True):
        content = read(bench.name)
        assert bench.question in row
        assert content is None or (f"(benchmarks/{bench.name}.md)" in row and commit(content) in row)
        assert len(row) < 420, "an answer is one figure with its spread"


def test_the_command_of_a_line_is_that_of_its_page() -> None:
    found = [(bench, content) for bench in BENCHES if (content := read(bench.name)) is not None]
    for bench, content in found:
        page, command = bench.section(content), command_of(bench, content)
        options = command.strip("`").removesuffix(" …").split()
        lines = [line.split() for line in page.splitlines() if line.startswith("    python -m bench.")]
        assert any({*options} <= {*line} for line in lines), f"{bench.name}: {command} made another result"


def test_a_command_too_long_for_its_line_says_that_there_is_more(tmp_path: Path) -> None:
    options = " ".join(f"--option-{number} {number}" for number in range(9))
    made = f"# One\n\n    python -m bench.one {options} --json bench/results/one.json\n"
    bench = Bench("one", "How many?", lambda content: "three", lambda content: made, command="one --option-0 0")
    assert command_of(bench, {}) == "`python -m bench.one --option-0 0 …`"
    short = replace(bench, section=lambda content: "# One\n\n    python -m bench.one --x 1 --json bench/one.json\n")
    assert command_of(short, {}) == "`python -m bench.one --x 1`"


def test_links_from_the_pages_lead_somewhere() -> None:
    for path, text in pages().items():
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_result_has_its_place_on_the_page() -> None:
    assert {file.stem for file in RESULTS.glob("*.json")} <= {bench.name for bench in BENCHES}


def test_of_a_bench_that_has_not_been_run_the_page_says_so(tmp_path: Path) -> None:
    about = {"machine": {"system": "Linux", "processor": "x86_64", "python": "3.12.1"}, "versions": {}, "commit": "abc"}
    (tmp_path / "one.json").write_text(json.dumps({"value": 3, **about}))
    benches = (
        Bench("one", "How many?", lambda content: "three", lambda content: f"# One\n\n{content['value']}\n"),
        Bench("two", "How few?", lambda content: "two", lambda content: "# Two\n", "none", "two --quick"),
    )
    made = pages(tmp_path, benches)
    assert set(made) == {PAGE, PAGES / "one.md"}
    assert "| [How many?](benchmarks/one.md) | three | simulated | `python -m bench.one` | abc |\n" in made[PAGE]
    assert "| How few? | still to be run | none | `python -m bench.two --quick` | – |\n" in made[PAGE]
    assert made[PAGES / "one.md"].startswith(
        "# One\n\n**How many?** Three.\n\n3\n\nMeasured with: Linux, x86_64, Python 3.12.1; commit abc.\n"
    )


def test_the_section_of_a_gpu_has_a_row_for_each_method() -> None:
    figures = {"proposals_per_min": 4.0, "output_tokens_per_s": 900.0, "mean_in_flight": 3.5, "proposals": 4.0}
    many = {**figures, "proposals_per_min": 20.0, "proposals": 80.0, "output_tokens_per_s": 1800.0}
    settings = {"engine": "vllm", "model": None, "shape": "tiny", "minutes": 5.0, "concurrency": 256, "repeats": 1}
    busy = {"utilization_percent": 91.2, "watts": 600.0}

    def row(method: str, came_to: dict[str, float], gpu: list[dict[str, float] | None]) -> dict[str, object]:
        values = {"proposals": [came_to["proposals"]]}
        return {"workload": "hover", "method": method, **came_to, "values": values, "gpu": gpu}

    def predicted(profile: str, method: str, tokens: float) -> dict[str, object]:
        values = {"proposals_per_min": [18.0, 26.0], "output_tokens_per_s": [tokens], "mean_in_flight": [3.5]}
        return {"profile": profile, "workload": "hover", "method": method, "values": values}

    content = {
        "rows": [row("gepa_sync", figures, [None]), row("stream", many, [busy, None]), row("ceiling", many, [busy])],
        "settings": settings,
        "machine": {"gpu": "H100, 580.1"},
        "check": {"error": -0.07},
    }
    made = gpu.section(content)
    assert "| hover, gepa_sync | 4.0 | 900.0 | 3.5 | 0.50 | 4 | – | – |" in made
    assert "| hover, stream | 20.0 | 1800.0 | 3.5 | 1.00 | 80 | 91 | 600 |" in made
    assert "that of `gepa_sync` comes from fewer" in " ".join(made.split())
    assert "shape `tiny` with random weights" in made
    assert "The simulator beside it" not in made
    content["predicted"] = [
        predicted(profile, method, tokens)
        for profile, tokens in (("measured", 1980.0), ("shipped", 900.0))
        for method in ("gepa_sync", "stream", "ceiling")
    ]
    made = gpu.section(content)
    assert "| hover, stream | proposals/min | 20.0 (80 counted) | 22.0 (18.0 to 26.0) | +10% | 22.0 |" in made
    assert "| hover, stream | output tokens/s | 1800.0 | 1980.0 (1980.0 to 1980.0) | +10% | 900.0 |" in made
    assert "| hover, gepa_sync | proposals/min | 4.0 (4 counted) | 22.0 (18.0 to 26.0) | +450% | 22.0 |" in made
    assert "The defaults make 1.0 times synchronous gepa's proposals as predicted, and 5.0 times as measured" in made
    assert off(content, "measured").startswith("proposals a minute by 10 % in the median and 450 % at worst, ")
    told = gpu.rates({"one": content})
    assert told.startswith(
        "| Proposals a minute on one H100 (random weights, simulated words), and how many were counted |"
    )
    assert told.endswith("\n| one, one run of 5 minutes | 4.0 (4) | – | 20.0 (80) | – |")
    trained: dict[str, object] = {**content, "settings": {**settings, "model": "m", "repeats": 2}}
    assert gpu.rates({"one": trained}).startswith("| Proposals a minute on one H100, and how many")
    batch = {**trained, "rows": [row("gepa_pxn_4x4", figures, [None])]}
    assert gpu.rates({"two": batch}).endswith("| two, 2 runs of 5 minutes each | – | 4.0 (4, one round each) | – | – |")


def test_the_section_of_a_gpu_says_what_candidates_are_worth_over_time() -> None:
    figures = {"proposals_per_min": 4.0, "output_tokens_per_s": 900.0, "mean_in_flight": 3.5, "best_score": 0.5}

    def row(method: str, *worth: tuple[float, float], repeats: int = 1) -> dict[str, object]:
        held_out = [[(seconds, seconds, 1000, each) for seconds, each in worth]] * repeats  # a call a second
        many = {**figures, "proposals": 20.0, "values": {"proposals": [20], "calls": [25]}}
        return {"workload": "hover", "method": method, **many, "held_out": held_out, "gpu": [None]}

    rows = [
        row("gepa_sync", (0, 0.2), (90, 0.4)),
        row("stream", (0, 0.2), (12, 0.4), (30, 0.7)),
        row("plain", (0, 0.2)),
    ]
    settings = {"engine": "vllm", "model": None, "shape": "tiny", "minutes": 2.5, "concurrency": 64, "repeats": 1}
    content = {
        "rows": rows,
        "settings": {**settings, "predicted_before": True},
        "machine": {"gpu": "H100, 580.1"},
        "check": None,
        "predicted": [
            {
                "profile": profile,
                "workload": "hover",
                "method": each["method"],
                "values": {name: [each[name]] for name in figures} | {"best_score": [worth]},
            }
            for profile, worth in (("measured", 0.6), ("shipped", 0.4))
            for each in rows
        ],
    }
    made = gpu.section(content)
    assert "| hover, gepa_sync | 0.20 | 0.20 | 0.20 | 0.40 | 0.40 | 0.40 | – | – |" in made
    assert "| hover, stream | 0.20 | 0.70 | 0.70 | 0.70 | 0.70 | 0.70 | 0.13, reached in 1 of 1 pairs | +0.20 |" in made
    assert made.count("never, reached in 0 of 1 pairs") == 1
    assert "ceiling" not in made.replace("of the ceiling's tokens", "")
    assert "| hover, stream | best validation score | 0.50 | 0.60 (0.60 to 0.60) | +20% | 0.40 |" in made
    assert "committed before these runs" in made
    assert "proposals a minute by 0 % in the median and 0 % at worst" in off(content, "measured")
    assert "synchronous gepa (0.00 to 0.00, by seed), and were 0.00 ahead, in one run." in made
    assert gpu.ends(content) == "", "single runs say nothing of scores"
    twice = [
        row("gepa_sync", (0, 0.2), (90, 0.4), repeats=2),
        row("stream", (0, 0.2), (12, 0.4), (30, 0.7), repeats=2),
    ]
    content |= {"rows": twice, "settings": {**settings, "repeats": 2, "predicted_before": True}}
    assert gpu.ends(content) == (
        "In the 2 runs with `hover` the defaults end with 0.70 (0.70 to 0.70) on rows held out and synchronous gepa "
        "with 0.40 (0.40 to 0.40); they have that after 0.13, reached in 4 of 4 pairs, of its time."
    )
    assert "All but the times are means of 2 runs" in gpu.section(content)
    twice[1]["best_score"] = 0.75
    assert "and were 0.25 ahead, in the mean of 2 runs, so this prediction failed." in leads(content)


def test_goals_that_are_missed_are_named_with_a_link() -> None:
    goals = {"speed": True, "memory": False, "time": False}
    bench = Bench(
        "so_many", "How many?", lambda content: "three", lambda content: "# One\n", goals=lambda content: goals
    )
    assert missed_goals([(bench, {})], "pages").endswith(" [so many](pages/so_many.md) (memory, time).")
    assert missed_goals([(bench, None)], "pages") == ""
    met = replace(bench, goals=lambda content: {"speed": True})
    assert missed_goals([(met, {})], "pages") == ""


def test_a_bench_names_the_goals_that_its_page_says_are_missed() -> None:
    others = {"quality", "program_peers"}  # whose pages have goals for single worlds, and other projects' words
    for bench in BENCHES:
        content = read(bench.name)
        if content is not None and bench.name not in others:
            said = bench.section(content)
            not_met = "missed" in said or (bench.name == "evaluations" and "met for programs of 200 ms" in said)
            assert bool(bench.missed(content)) == not_met, bench.name
    quality, content = next((bench, read(bench.name)) for bench in BENCHES if bench.name == "quality")
    assert content is not None
    early = {**content, "headline": {**content["headline"], "harsh_worst": 0.0}}
    assert quality.missed(early) == []
    late = {**content, "headline": {**content["headline"], "time_median": 0.4, "harsh_worst": None}}
    assert quality.missed(late) == ["time in the median"]


def test_provenance_names_the_machine_and_uncommitted_changes() -> None:
    machine = {"system": "Linux", "processor": "x", "model": "CPU 9", "cores": 2, "memory_gb": 25, "python": "3.12.1"}
    content = {
        "machine": machine,
        "versions": {"anyio": "4"},
        "commit": "abc",
        "uncommitted_changes": True,
        "date": "2026-11-21",
    }
    assert provenance(content) == (
        "Measured with: Linux, CPU 9, 2 cores, 25 GB, Python 3.12.1, anyio 4; "
        "commit abc with changes that are in no commit, 2026-11-21."
    )


def test_figures_as_text() -> None:
    assert ranged({"median": 0.5, "low": 0.25, "high": 1}) == "0.50 (0.25–1.00)"
    assert ranged({"median": 12.2, "low": 9.7, "high": 13}) == "12 (10–13)"
    assert ranged({"median": 0.96, "low": 0.96, "high": 0.96}) == "0.96"
    assert ranged({"median": 12.2, "low": 9.7, "high": 13}, 1) == "12.2 (9.7–13.0)"
    assert [between(1, 1), between(1, 2)] == ["1", "1 to 2"]
    assert percent(0.0429) == "4 %"
    assert table(("", "a"), [("x", "1")]) == "| | a |\n| --- | --- |\n| x | 1 |"


def test_the_page_on_quality_says_how_far_its_lockstep_is_from_gepa_itself() -> None:
    page = " ".join((PAGES / "quality.md").read_text(encoding="utf-8").split())
    assert (
        "its held-out score at equal calls, less gepa's, and its time to gepa's last one, over gepa's, are: on" in page
    )
    assert "So times on this page are not over gepa's own." in page
