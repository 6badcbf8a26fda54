"""Fronts of objectives against a plain reading of what they are for."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve.archives.base import ARCHIVES
from flowevolve.archives.objectives import FrontKind
from flowevolve.archives.pareto import ParetoArchive
from flowevolve.core.artifact import Artifact
from flowevolve.core.assessment import Assessment
from flowevolve.core.pool import Add, Candidate, Update

EXAMPLES = ("a", "b")
levels = st.sampled_from([0.0, 0.5, 1.0])
measured = st.fixed_dictionaries({"score": levels, "recall": levels, "seconds": levels})
candidates = st.lists(st.tuples(measured, measured), min_size=1, max_size=8)


def made(number: int, numbers: tuple[Mapping[str, float], ...], text: str = "x") -> Candidate:
    by_example = dict(zip(EXAMPLES, numbers, strict=True))
    metrics = {name: {key: each[key] for key in each if key != "score"} for name, each in by_example.items()}
    bare = Candidate(f"c{number}", Artifact({"p": text}))
    return Assessment(metrics_by_example=metrics).on(bare).scored({name: n["score"] for name, n in by_example.items()})


def values(kind: FrontKind, numbers: tuple[Mapping[str, float], ...]) -> list[float]:
    """The plain definition: what each front compares."""
    scores = [each["score"] for each in numbers]
    recalls, speeds = [each["recall"] for each in numbers], [-each["seconds"] for each in numbers]
    return {
        "instance": scores,
        "objective": [fmean(recalls), fmean(speeds)],
        "hybrid": [*scores, fmean(recalls), fmean(speeds)],
        "cartesian": [*recalls, *speeds],
    }[kind]


@pytest.mark.parametrize("kind", ["objective", "hybrid", "cartesian"])
@given(drawn=candidates)
def test_who_is_selected_from_reaches_a_best_value_and_each_best_value_is_reached(
    kind: FrontKind, drawn: list[tuple[Mapping[str, float], ...]]
) -> None:
    archive = ParetoArchive(kind, ["recall", "-seconds"])
    for number, numbers in enumerate(drawn):
        archive.apply(Update(number + 1, (Add(made(number, numbers)),), "item", 0.0))
    table = [values(kind, numbers) for numbers in drawn]
    best = [max(column) for column in zip(*table, strict=True)]
    weights = archive.weights()
    for name, weight in weights.items():
        assert weight == sum(own == top for own, top in zip(table[int(name[1:])], best, strict=True)) > 0
    for place, top in enumerate(best):
        assert any(table[int(name[1:])][place] == top for name in weights)


@given(candidates)
def test_what_candidates_are_measured_against_is_the_same_for_all_fronts(
    drawn: list[tuple[Mapping[str, float], ...]],
) -> None:
    archives = [ParetoArchive(), ParetoArchive("objective", ["recall", "-seconds"])]
    for archive in archives:
        for number, numbers in enumerate(drawn):
            archive.apply(Update(number + 1, (Add(made(number, numbers)),), "item", 0.0))
    assert archives[0].standing() == archives[1].standing()
    assert archives[0].best() == archives[1].best()


def test_the_shorter_of_two_that_are_as_good_is_kept_where_length_counts() -> None:
    numbers = ({"score": 1.0, "recall": 1.0, "seconds": 1.0},) * 2
    archive = ParetoArchive("hybrid", ["-length"])
    for number, text in enumerate(("a long text", "short")):
        archive.apply(Update(number + 1, (Add(made(number, numbers, text)),), "item", 0.0))
    assert archive.weights() == {"c1": 3}


def test_a_candidate_that_lacks_a_metric_somewhere_is_not_on_the_front_of_its_mean() -> None:
    whole = {"score": 0.5, "recall": 0.1, "seconds": 1.0}
    partly = {"score": 0.0, "recall": 1.0, "seconds": 1.0}, {"score": 0.0, "seconds": 1.0}
    archive = ParetoArchive("objective", ["recall"])
    for number, numbers in enumerate(((whole, whole), partly)):
        archive.apply(Update(number + 1, (Add(made(number, numbers)),), "item", 0.0))
    assert archive.weights() == {"c0": 1}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"fronts": "objective"}, r"is \[\], but fronts = 'objective' needs objectives"),
        ({"objectives": ["recall"]}, r"is \['recall'\], but fronts = 'instance' uses no objectives"),
        ({"fronts": "pareto", "objectives": ["recall"]}, "fronts"),
    ],
)
def test_settings_that_say_nothing_are_refused(settings: Mapping[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        ARCHIVES.make("pareto", settings, "algorithm.archive")
