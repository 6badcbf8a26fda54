"""The README stays on one screen, and its figures are those of the files in bench/results."""

from __future__ import annotations

from bench.report.readme import README, figures, written


def test_its_figures_are_those_of_the_results() -> None:
    text = README.read_text(encoding="utf-8")
    assert figures() in text
    assert written(text) == text, "write them again: python -m bench.report.readme"


def test_it_has_at_most_120_lines() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120
