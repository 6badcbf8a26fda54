"""The pages on algorithms have no figure of a result that is not made from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.report import algorithm_pages
from bench.report.algorithm_pages import FOLDER, MEASURED, measured
from bench.report.bench import Bench

_MADE = re.compile(r"<!-- measured: .*?<!-- end of measured -->", re.DOTALL)
_FIGURE = re.compile(r"\d[.,]\d|\d %|\b\d+ (times|points|of)\b")


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: page.stem)
def test_what_was_measured_is_made_from_results(page: Path) -> None:
    _, _, said = page.read_text(encoding="utf-8").partition("## What was measured here")
    assert _FIGURE.findall(_MADE.sub("", said)) == [], (
        "figures stand between the marks: bench/report/algorithm_pages.py"
    )
    assert bool(_MADE.search(said)) == (page.stem in MEASURED)


def test_a_line_is_a_bench_and_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    benches = [
        Bench(name, "How many?", lambda content: f"{content['value']} of them", lambda content: "")
        for name in ("one", "two")
    ]
    monkeypatch.setattr(algorithm_pages, "BENCHES", benches)
    monkeypatch.setattr(algorithm_pages, "read", {"one": {"value": "all", "commit": "abc"}}.get)
    assert measured(["two", "one"]) == "- [How many?](../benchmarks/one.md) All of them."
