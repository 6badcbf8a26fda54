"""The pages of benchmarks say what the files in bench/results say."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from bench._lib.paths import ROOT
from bench._lib.text import between, commit, percent, provenance, ranged, table
from bench.confirm.__main__ import parse
from bench.report.bench import Bench
from bench.report.benches import BENCHES
from bench.report.first_page import REPEATS, confirm, first_page, missed_goals
from bench.report.page import ALL, PAGE, PAGES, command_of, pages
from bench.report.results import RESULTS, read


def test_the_pages_are_what_the_results_make() -> None:
    made = pages()
    assert {PAGE, *PAGES.glob("*.md")} == made.keys(), "remove the page of a bench that is gone"
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, "write it again: python -m bench.report"


def test_the_first_page_fits_a_screen_and_says_what_figures_are_worth_before_it_links_to_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert "No capable model has confirmed" in lines[2]
    missed, timing, links = (
        next(number for number, line in enumerate(lines) if line.startswith(each))
        for each in ("**Goals that we set ourselves and miss (", "**How far the simulator's timing holds**", "## All")
    )
    assert missed < timing < 12
    assert links < len(lines) < 55
    assert len(text) < 9_000
    known = [bench.name for bench in BENCHES if read(bench.name) is not None]
    linked = re.findall(r"\]\(benchmarks/(\w+)\.md\)", "\n".join(lines[links:]))
    assert linked == ["all", *known]


def test_the_first_page_says_which_profiles_its_figures_have_and_what_predictions_are_of() -> None:
    content = read("prediction")
    assert content is not None
    bench = next(each for each in BENCHES if each.name == "prediction")
    text = first_page([(bench, {**content, "plan": {**content["plan"], "workload": "made_up"}})])
    assert "On the two CPU cores, with `made_up`\nalone, it was met; a first try" in text
    assert "two CPU cores, `made_up` | measured right before |" in text
    assert "The figures below and in README have the shipped profiles:" in text


def test_the_hours_that_throughput_takes_are_those_of_its_result() -> None:
    content = read("throughput")
    assert content is not None
    said = " ".join((ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8").split())
    assert f"throughput alone are some {content['settings']['real_minutes'] / 60:.0f} hours of real time" in said


def test_each_bench_has_a_line_with_its_answer() -> None:
    lines = ALL.read_text(encoding="utf-8").splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("| what was asked |"))
    for bench, row in zip(BENCHES, lines[head + 2 :], strict=False):
        content = read(bench.name)
        assert bench.question in row
        assert content is None or (f"({bench.name}.md)" in row and commit(content) in row)
        assert len(row) < 480, "an answer is one figure with its spread"


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
    assert set(made) == {PAGE, ALL, PAGES / "one.md"}
    assert "| [How many?](one.md) | three | simulated | `python -m bench.one` | abc |\n" in made[ALL]
    assert "| How few? | still to be run | none | `python -m bench.two --quick` | – |\n" in made[ALL]
    assert made[PAGES / "one.md"].startswith(
        "# One\n\n**How many?** Three.\n\n3\n\nMeasured with: Linux, x86_64, Python 3.12.1; commit abc.\n"
    )


def test_goals_that_are_missed_are_named_with_a_link() -> None:
    goals = {"speed": True, "memory, at most 1 GB": False, "time, at most 1 s": False}
    bench = Bench(
        "so_many", "How many?", lambda content: "three", lambda content: "# One\n", goals=lambda content: goals
    )
    assert missed_goals([(bench, {})], "pages").endswith(" [so many](pages/so_many.md) (2 of 3: memory, time).")
    assert "and miss (2 of 3: 2 of 3 on predictions and machinery):** [so" in missed_goals([(bench, {})], "pages")
    none = replace(bench, name="quality", goals=lambda content: {"speed": False, "time": False})
    said = missed_goals([(bench, {}), (none, {})], "pages")
    assert "(4 of 5: all 2 beside our own loop (*lockstep*) and 2 of 3 on predictions and machinery):**" in said
    assert said.endswith(" [quality](pages/quality.md) (2 of 2).")
    assert missed_goals([(bench, None)], "pages") == ""
    met = replace(bench, goals=lambda content: {"speed": True})
    assert missed_goals([(met, {})], "pages") == ""


def test_what_the_command_can_show_is_said_of_the_repeats_that_it_makes() -> None:
    assert parse(["--rehearse-on", "sim", "--tokens", "9"]).repeats == REPEATS
    assert f"Its {REPEATS} repeats rarely show so small a difference" in confirm("confirm.md")


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
    content: dict[str, object] = {
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
    assert provenance({**content, "note": "Others worked, too."}).endswith(", 2026-11-21. Others worked, too.")


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
