"""Every result names a commit that is there, and says so itself if what it measures has changed since."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from bench._lib import history
from bench.report import age
from bench.report.bench import Bench
from bench.report.benches import BENCHES
from bench.report.page import pages
from bench.report.results import RESULTS, read
from tests.support.repository import Repository

BEFORE_RESULTS_NAMED_ONE = {
    "examples/openevolve.json",
    "examples/peers.json",
    "first_real_run/quiet_stream.json",
    "first_real_run/quiet_sync.json",
    "first_real_run/stream.json",
    "first_real_run/sync.json",
}
"""Measured on 2026-11-21, when files of these kinds did not name the commit. None may be added."""


@pytest.fixture(scope="session", autouse=True)
def whole_history() -> None:
    """These tests need the whole history: a checkout without it skips them, but not where changes are tested."""
    if age.has_history():
        return
    if os.environ.get("CI"):
        pytest.fail("this checkout has no history, or not all of it: fetch it all (fetch-depth: 0)")
    pytest.skip("this checkout has no history, or not all of it: whether results are old can't be told")


def commits() -> Mapping[str, object]:
    """The commit that each file in bench/results names."""
    contents = {file: json.loads(file.read_text(encoding="utf-8")) for file in RESULTS.rglob("*.json")}
    return {str(file.relative_to(RESULTS)): content.get("commit") for file, content in contents.items()}


def test_every_result_names_a_commit_that_is_in_the_history() -> None:
    found = commits()
    assert {name for name, commit in found.items() if commit is None} == BEFORE_RESULTS_NAMED_ONE
    assert {f"{name}: {commit}" for name, commit in found.items() if commit and not age.knows(str(commit))} == set()


def test_no_result_names_a_place_of_the_machine_that_it_was_measured_on() -> None:
    places = re.compile(r'"(/|[A-Z]:\\\\)\w')
    assert [file.name for file in RESULTS.rglob("*.json") if places.search(file.read_text(encoding="utf-8"))] == []


def test_what_is_no_commit_of_this_history_is_not_known() -> None:
    assert age.knows("HEAD")
    assert not age.knows("4f79577e0000")


def test_no_result_is_older_than_what_it_measures_unless_its_page_says_so() -> None:
    advice = "measure again, or say why not: python -m bench.report.age --mark 'REASON' NAME"
    assert age.aged() == {}, advice
    for name, mark in age.marks().items():
        assert mark.reason.endswith("."), "the page has the reason as a sentence"
        assert name in {bench.name for bench in BENCHES}


def test_every_bench_declares_files_that_are_there() -> None:
    for bench in BENCHES:
        assert bench.measures, f"{bench.name} declares nothing that its result could be older than"
        for path in bench.measures:
            assert (RESULTS.parents[1] / path.removeprefix(":(exclude)")).exists(), f"{bench.name}: {path}"


def test_a_change_of_what_is_measured_makes_a_result_old() -> None:
    bench = next(each for each in BENCHES if each.name == "gepa_modes")
    content = {**(read("gepa_modes") or {}), "commit": "f16eb17"}  # of the first days
    assert len(age.changes(bench, content)) > 100
    assert age.changes(bench, {**content, "commit": "HEAD"}) == []


def test_a_commit_that_says_how_it_was_checked_that_no_figure_changes_makes_no_result_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(history, "ROOT", tmp_path)

    repository = Repository(tmp_path)
    first = repository.commit("stages", "1")
    words = repository.commit(
        "stages", "2", "Other words\n\nFigures-unchanged: a run before and after\n  had the same journal"
    )
    bench = Bench("one", "How many?", lambda content: "", lambda content: "", measures=("stages",))
    assert age.changes(bench, {"commit": first}) == []
    assert age.changed(bench, {"commit": first}) == []
    assert age.held_unchanged(bench, {"commit": first}) == {words: "a run before and after had the same journal"}
    monkeypatch.setattr(age, "BENCHES", (bench,))
    monkeypatch.setattr(age, "read", lambda name: {"commit": first})
    monkeypatch.setattr("sys.argv", ["age", "--unchanged"])
    age.main()
    assert capsys.readouterr().out == f"{words} (one): a run before and after had the same journal\n"
    more = repository.commit("stages", "3", "Another rule\n\nFigures-unchanged:")
    assert age.changes(bench, {"commit": first}) == [more]


def test_the_age_of_a_mark_is_counted_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = "f16eb17"  # a commit of the first days
    monkeypatch.setattr(age, "read", lambda name: {**(read(name) or {}), "commit": first})
    marks = {
        "quality": age.Mark(first, 1, "It takes hours."),
        "ace": age.Mark("of an earlier result", 1, ""),
    }
    monkeypatch.setattr(age, "MARKS", tmp_path / "old.json")
    age.MARKS.write_text(json.dumps({name: asdict(mark) for name, mark in marks.items()}))
    monkeypatch.setattr("sys.argv", ["age", "--recount"])
    age.main()
    assert age.marks().keys() == {"quality"}
    assert age.marks()["quality"].commits > 1
    assert age.marks()["quality"].reason == "It takes hours."
    assert "flowevolve/engine" in age.marks()["quality"].changed


def test_only_what_commits_have_changed_is_told() -> None:
    """The commit named here is of the first days; what is left out does not count."""
    bench = Bench("one", "How many?", lambda content: "", lambda content: "", measures=("LICENSE", "stages", "bench"))
    assert age.changed(bench, {"commit": "f16eb17"}) == ["stages", "bench"]
    alone = replace(bench, measures=("LICENSE", "stages", ":(exclude)stages"))
    assert age.changed(alone, {"commit": "f16eb17"}) == []


def test_the_page_of_a_marked_result_says_how_old_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    content = read("ace")
    assert content is not None
    mark = age.Mark(content["commit"], 1, "Its prompts are being rewritten.", ["stages"])
    monkeypatch.setattr(age, "marks", lambda: {"ace": mark})
    made = {path.stem: text for path, text in pages().items()}
    assert "**Older than what it measures:** at least 1 commit since has changed `stages`. Its prompts" in made["ace"]
    assert f"| {content['commit']}, {content['date']}; older by at least 1 commit |" in made["all"]
    of_another_result = age.Mark("abc", 1, "No longer true.")
    monkeypatch.setattr(age, "marks", lambda: {"ace": of_another_result})
    assert "No longer true." not in "".join(pages().values())
