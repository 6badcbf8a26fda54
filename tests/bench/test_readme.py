"""The README stays on one screen, and its figures are those of the files in bench/results."""

from __future__ import annotations

import re

import flowevolve as fe
from bench.report.readme import README, figures, written


def test_its_figures_are_those_of_the_results() -> None:
    text = README.read_text(encoding="utf-8")
    assert figures() in text
    assert written(text) == text, "write them again: python -m bench.report.readme"


def test_it_has_at_most_120_lines() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


def test_the_scores_that_the_first_example_promises_are_those_it_has() -> None:
    said = re.search(r"# the score rises from ([\d.]+) to ([\d.]+)", README.read_text(encoding="utf-8"))
    assert said is not None
    result = fe.optimize("house_style", llm="simulated", clock="virtual", budget=fe.Budget(minutes=10))
    assert [f"{score:.2f}" for score in (result.seed_score or 0.0, result.best.score if result.best else 0.0)] == [
        said[1],
        said[2],
    ]
