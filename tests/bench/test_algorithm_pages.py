"""The pages on algorithms have no figure of a result that is not made from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.report import algorithm_pages
from bench.report.algorithm_pages import FOLDER, MEASURED, measured
from bench.report.results import read

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
    spread = {"median": 0.5, "low": 0.5, "high": 0.5}
    content = {
        **(read("ace") or {}),
        "commit": "abc",
        "spread": dict.fromkeys(
            ("time_to_sync_score_ratio", "stream_samples_per_minute", "sync_samples_per_minute"), spread
        ),
    }
    results = {"ace": content}
    monkeypatch.setattr(algorithm_pages, "read", results.get)
    assert measured(["ace", "algorithms"]).startswith(
        "- [How soon does ACE's stream reach the score of its lockstep form?](../benchmarks/ace.md) 0.50 of the time"
    )
    assert "algorithms.md" not in measured(["ace", "algorithms"]), "it has no result"
