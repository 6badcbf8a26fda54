"""What is said of the ablations."""

from __future__ import annotations

from collections.abc import Mapping

from bench._lib.text import Content
from bench.ablations.section import answer, section
from bench.report.results import read


def test_the_answer_has_the_scores_of_every_number_of_workers() -> None:
    scores = {"full 4x4": 0.67, "full 16x8": 0.6, "reflective 4x4": 0.96, "reflective 16x8": 0.95}
    runs = {name: {"held out": {"median": score}} for name, score in scores.items()}
    content = {"tables": {"staleness": {"runs": runs}}, "settings": {"minutes": 30.0}}
    assert answer(content) == (
        "held-out score after 30 minutes with `full`, `reflective`: 0.67, 0.96 with 4x4 workers; "
        "0.60, 0.95 with 16x8 workers (medians)"
    )


def with_runs(table: str, **columns: Mapping[str, float]) -> Content:
    """The result, with these medians in one of its tables: of each column, by run."""
    content = read("ablations")
    assert content is not None
    runs = content["tables"][table]["runs"]
    changed = {name: {**run} for name, run in runs.items()}
    for column, medians in columns.items():
        for name, median in medians.items():
            changed[name][column] = {"median": median, "low": median, "high": median}
    return {**content, "tables": {**content["tables"], table: {"runs": changed}}}


def said(content: Content) -> str:
    return " ".join(section(content).split())


def test_which_policy_is_best_is_read_from_the_scores() -> None:
    scores = {"full 16x8": 0.99, "guarded 16x8": 0.9, "reflective 16x8": 0.8}
    content = with_runs("staleness", **{"held out": scores})
    assert "`full` is best and `reflective` worst with 16x8 workers" in said(content)


def test_adaptive_workers_stand_beside_the_fixed_setting_that_accepts_most() -> None:
    accepted = {"fixed 1x1": 1.0, "fixed 8x4": 4.0, "fixed 16x8": 8.0, "median_rate": 6.0, "ours": 10.0}
    content = with_runs("allocation gpt-4o-mini-api", **{"accepted/min": accepted, "held out": {"fixed 1x1": 1.0}})
    assert (
        "`fixed 16x8` accepts most of the fixed settings, `median_rate` 0.75 times and `ours` 1.25 times as many, and "
        "`fixed 1x1` has the best score of all."
    ) in said(content)


def test_the_best_speculation_is_told_as_the_best_of_several_by_the_same_runs() -> None:
    best = {"alpha": 0.5, "reordered": False, "validations_ratio": 1.5, "score_loss": 0.01}
    content = {**with_runs("speculation"), "speculation": best}
    assert (
        "Of 6 settings below alpha 1, with examples in random order, the best was *alpha 0.5*, with 1.50 times the "
        "validations of alpha 1 and a held-out score 0.010 lower (medians over seeds). It was picked by these same runs"
    ) in said(content)
