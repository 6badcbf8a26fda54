"""Merging: which pairs qualify, and what they become."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

from hypothesis import given, strategies as st

from flowevolve.algorithms.gepa.merge import ancestors, find_merge, join, stratified_ids
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Candidate


def candidate(name: str, texts: tuple[str, str], score: float, *parents: str) -> Candidate:
    made = Candidate(name, Artifact({"a": texts[0], "b": texts[1]}), parents)
    return made.scored({"x": score, "y": score})


ROOT = candidate("root", ("0", "0"), 0.2)
LEFT = candidate("left", ("L", "0"), 0.6, "root")
RIGHT = candidate("right", ("0", "R"), 0.5, "root")
CHILD = candidate("child", ("L", "C"), 0.7, "left")
FAMILY = {each.id: each for each in (ROOT, LEFT, RIGHT, CHILD)}


def test_each_component_comes_from_the_side_that_changed_it() -> None:
    assert dict(join(LEFT, RIGHT, ROOT)) == {"a": "L", "b": "R"}


def test_where_both_changed_the_better_one_wins() -> None:
    assert dict(join(CHILD, RIGHT, ROOT)) == {"a": "L", "b": "C"}


def test_relatives_in_line_are_not_merged() -> None:
    assert find_merge([LEFT, CHILD], FAMILY.__getitem__, frozenset(), Random(0)) is None


def test_a_pair_is_found_once() -> None:
    found = find_merge([LEFT, RIGHT], FAMILY.__getitem__, frozenset(), Random(0))
    assert found is not None
    assert found.ancestor is ROOT
    done = frozenset({(found.first.id, found.second.id, "root")})
    assert find_merge([LEFT, RIGHT], FAMILY.__getitem__, done, Random(0)) is None


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(2, 12))
def test_of_all_shared_ancestors_those_that_qualify_may_be_chosen(seed: int, components: int, size: int) -> None:
    """Held against a search that looks at every shared ancestor of every pair."""
    draws = Random(seed)
    family: dict[str, Candidate] = {}
    for number in range(size):
        texts = {name: draws.choice("xyz") for name in "abc"[:components]}
        parents = draws.sample(sorted(family), min(len(family), draws.randint(0, 2)))
        made = Candidate(f"c{number}", Artifact(texts), tuple(parents))
        family[made.id] = made.scored({"e": draws.choice([0.0, 0.5, 1.0])})
    lineage = {name: ancestors(each, family.__getitem__) for name, each in family.items()}

    def qualifies(first: Candidate, second: Candidate, ancestor: Candidate) -> bool:
        sides = [[side.artifact[name] == text for side in (first, second)] for name, text in ancestor.artifact.items()]
        least = min(first.mean_score, second.mean_score)
        return ancestor.mean_score <= least and any(one != other for one, other in sides)

    every = {
        (first.id, second.id, name)
        for first, second in combinations(family.values(), 2)
        if first.id not in lineage[second.id] and second.id not in lineage[first.id]
        for name in lineage[first.id] & lineage[second.id]
        if qualifies(first, second, family[name])
    }
    found: set[tuple[str, str, str]] = set()
    while merge := find_merge(list(family.values()), family.__getitem__, frozenset(found), draws):
        found.add((merge.first.id, merge.second.id, merge.ancestor.id))
    assert found == every


def test_a_search_in_vain_looks_up_each_ancestor_of_a_candidate_once() -> None:
    """As with one component, of which no two candidates have the same text."""
    size, looked = 200, Counter[str]()
    family = {
        f"c{number}": Candidate(
            f"c{number}", Artifact({"prompt": f"text {number}"}), (f"c{max(0, number - 5)}",) if number else ()
        ).scored({"e": number / size})
        for number in range(size)
    }

    def lookup(name: str) -> Candidate:
        looked[name] += 1
        return family[name]

    heirs = list(family.values())[-20:]
    assert find_merge(heirs, lookup, frozenset(), Random(0)) is None
    assert max(looked.values()) <= len(heirs) + 1


def test_an_ancestor_better_than_its_heirs_does_not_qualify() -> None:
    good_root = candidate("root", ("0", "0"), 0.9)
    family = {**FAMILY, "root": good_root}
    assert find_merge([LEFT, RIGHT], family.__getitem__, frozenset(), Random(0)) is None


def test_an_ancestor_as_good_as_the_lesser_of_its_heirs_qualifies() -> None:
    family = {**FAMILY, "root": candidate("root", ("0", "0"), 0.5)}
    assert find_merge([LEFT, RIGHT], family.__getitem__, frozenset(), Random(0)) is not None
    family["root"] = candidate("root", ("0", "0"), 0.55)  # better than one of them
    assert find_merge([LEFT, RIGHT], family.__getitem__, frozenset(), Random(0)) is None


def test_an_ancestor_that_was_run_on_fewer_examples_does_not_qualify() -> None:
    family = {**FAMILY, "root": ROOT.scored({"x": 0.2})}
    assert find_merge([LEFT, RIGHT], family.__getitem__, frozenset(), Random(0)) is None


def test_one_component_that_only_one_of_them_changed_is_enough_to_qualify_and_needed() -> None:
    other, rewritten = candidate("other", ("L", "C"), 0.6, "root"), candidate("rewritten", ("M", "S"), 0.5, "root")
    found = find_merge([other, RIGHT], FAMILY.__getitem__, frozenset(), Random(0))
    assert found is not None
    assert dict(found.artifact) == {"a": "L", "b": "C"}
    assert find_merge([other, rewritten], FAMILY.__getitem__, frozenset(), Random(0)) is None


def test_ancestors_reach_through_generations() -> None:
    assert ancestors(CHILD, FAMILY.__getitem__) == {"left", "root"}


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=1, max_size=20),
    st.integers(1, 8),
    st.integers(0, 3),
)
def test_stratified_ids_are_distinct_and_as_many_as_can_be(
    pairs: list[tuple[float, float]], size: int, seed: int
) -> None:
    first = LEFT.scored({str(n): pair[0] for n, pair in enumerate(pairs)})
    second = RIGHT.scored({str(n): pair[1] for n, pair in enumerate(pairs)})
    ids = stratified_ids(first, second, size, Random(seed))
    assert len(ids) == len(set(ids)) == min(size, len(pairs))
    assert set(ids) <= set(first.scores)


def test_where_each_wins_and_where_neither_does_there_are_as_many_ids() -> None:
    first = {**dict.fromkeys("abcdef", 1.0), **dict.fromkeys("ghijkl", 0.0), **dict.fromkeys("mnopqr", 0.5)}
    second = {**dict.fromkeys("abcdef", 0.0), **dict.fromkeys("ghijkl", 1.0), **dict.fromkeys("mnopqr", 0.5)}
    for seed in range(5):
        ids = stratified_ids(LEFT.scored(first), RIGHT.scored(second), 6, Random(seed))
        assert [sum(name in stratum for name in ids) for stratum in ("abcdef", "ghijkl", "mnopqr")] == [2, 2, 2]
    assert set(stratified_ids(LEFT.scored({"x": 1.0}), RIGHT.scored({"x": 1.0, "y": 1.0}), 6, Random(0))) == {"x"}
