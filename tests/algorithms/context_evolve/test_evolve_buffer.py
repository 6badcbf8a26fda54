"""The Evolve Buffer: who may be a parent, what is offered as examples, and trajectories, as functions of the log."""

from __future__ import annotations

from random import Random

from hypothesis import given, strategies as st

from flowevolve._util.json_types import JSON
from flowevolve.algorithms.context_evolve.evolve_buffer import EvolveBuffer, draw_trajectories, kind_of
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import Add, Candidate, Update
from flowevolve.prompts.abstracts import Trajectory, TrajectoryKind

EVENLY: dict[TrajectoryKind, float] = {"improvement": 1, "mixed": 1, "decline": 1}


class Log:
    """Commits programs one by one."""

    def __init__(self, *, described: bool = True, failed_parents: bool = False) -> None:
        self.buffer = EvolveBuffer(described=described, failed_parents=failed_parents)
        self.version = 0

    def add(
        self,
        name: str,
        score: float,
        parent: str = "",
        *,
        failed: bool = False,
        abstract: str = "A way.",
        text: str = "",
    ) -> Candidate:
        known: dict[str, JSON] = {"abstract": abstract, "failure": "error" if failed else None}
        artifact = Artifact({"program.py": text or name}, "program")
        program = Candidate(
            name, artifact, (parent,) if parent else (), "generate" if parent else "seed", attributes=known
        ).scored({"one": score})
        self.version += 1
        self.buffer.apply(Update(self.version, (Add(program, "rejected" if failed else "confirmed"),), "0", 0.0))
        return program

    def parents(self) -> list[str]:
        return [each.id for each in self.buffer.parents]

    def found(self, steps: int = 3, ends: int = 100) -> dict[str, float]:
        return {str(each): round(change, 6) for each, change in self.buffer.trajectories(ends, steps)}


def test_parents_are_ranked_and_no_text_counts_twice() -> None:
    log = Log()
    log.add("a", 1.0)
    log.add("b", 3.0, "a")
    log.add("c", 3.0, "a")
    log.add("d", 9.0, "a", failed=True)
    log.add("e", 2.0, "a", text="b")
    assert log.parents() == ["b", "c", "a"]
    best = log.buffer.best()
    assert best is not None
    assert best.id == "b"
    assert len(log.buffer) == 5


def test_programs_that_failed_are_parents_only_if_that_is_wanted() -> None:
    log = Log(failed_parents=True)
    log.add("a", -3.0)
    log.add("b", 5.0, "a", failed=True)
    assert log.parents() == ["a", "b"]
    assert [each.id for each in log.buffer.top(log.add("c", 0.0, "a"), 5)] == ["a"]


def test_without_an_abstract_a_program_is_neither_parent_nor_example() -> None:
    log = Log()
    seed = log.add("a", 1.0)
    log.add("b", 2.0, "a", abstract="")
    assert log.parents() == ["a"]
    assert log.buffer.examples(seed, 9, Random(0)) == []
    assert log.found() == {}
    bare = Log(described=False)
    bare.add("a", 1.0, abstract="")
    assert bare.parents() == ["a"]


def test_examples_are_the_best_the_newest_and_some_of_the_rest() -> None:
    log = Log()
    parent = log.add("p", 50.0)
    for number in range(40):
        log.add(f"c{number}", float(number), "p", failed=number % 4 == 3)
    offered = [each.id for each in log.buffer.examples(parent, 12, Random(1))]
    assert offered[:6] == ["c38", "c37", "c36", "c34", "c33", "c32"]
    assert offered[6:9] == ["c39", "c35", "c31"]
    assert len(set(offered)) == 12
    drawn = {each.id for seed in range(50) for each in log.buffer.examples(parent, 12, Random(seed))[9:]}
    assert "c3" in drawn  # failed, and long ago
    few = log.buffer.examples(parent, 99, Random(1))
    assert sorted(each.id for each in few) == sorted(f"c{number}" for number in range(40))


def test_history_is_the_best_and_then_the_newest_that_work() -> None:
    log = Log()
    parent = log.add("p", 50.0)
    for number in range(10):
        log.add(f"c{number}", float(-number), "p", failed=number == 9)
    assert [each.id for each in log.buffer.history(parent, 5)] == ["c0", "c1", "c2", "c8", "c7"]
    assert log.buffer.history(parent, 0) == []


def test_how_many_better_ones_have_come() -> None:
    log = Log()
    for name, score in (("a", 1.0), ("b", 2.0), ("c", 0.5), ("d", 3.0)):
        log.add(name, score)
    log.add("e", 9.0, failed=True)
    assert log.buffer.better_since(1, 1.0) == 2
    assert log.buffer.better_since(3, 1.0) == 1
    assert log.buffer.better_since(0, 0.0) == 4
    assert log.buffer.better_since(5, 0.0) == 0


# Trajectories


def test_a_change_is_what_the_child_has_more_than_its_parent() -> None:
    log = Log()
    log.add("a", 1.0)
    log.add("b", 1.5, "a")
    log.add("c", 1.25, "b")
    log.add("d", 0.0, "c", failed=True)
    assert log.found() == {
        "a -> b (+0.5)": 0.5,
        "b -> c (-0.25)": -0.25,
        "a -> b (+0.5) -> c (-0.25)": 0.25,
        "c -> d (failed)": -1.25,
        "b -> c (-0.25) -> d (failed)": -1.5,
        "a -> b (+0.5) -> c (-0.25) -> d (failed)": -1.0,
    }
    assert set(log.found(steps=1)) == {"a -> b (+0.5)", "b -> c (-0.25)", "c -> d (failed)"}
    assert set(log.found(steps=1, ends=2)) == {"b -> c (-0.25)", "c -> d (failed)"}


def test_kinds() -> None:
    assert kind_of([0.1, 2.0]) == "improvement"
    assert kind_of([-0.1, None]) == "decline"
    assert kind_of([0.1, None]) == kind_of([0.0]) == kind_of([0.1, 0.0]) == "mixed"


def test_kinds_are_drawn_by_weight_and_of_a_kind_the_large_changes_first() -> None:
    log = Log()
    log.add("a", 0.0)
    for number in range(1, 30):
        log.add(f"up{number}", float(number), "a")
        log.add(f"down{number}", float(-number), "a")
    found = log.buffer.trajectories(100, 3)
    only = draw_trajectories(found, 20, {"improvement": 1, "decline": 0}, Random(0))
    assert {each.kind for each in only} == {"improvement"}
    assert len(only) == 20
    counts: dict[str, int] = {}
    for seed in range(300):
        (drawn,) = draw_trajectories(found, 1, {"improvement": 3, "decline": 1}, Random(seed))
        counts[drawn.kind] = counts.get(drawn.kind, 0) + 1
        counts[drawn.programs[-1]] = counts.get(drawn.programs[-1], 0) + 1
    assert 190 < counts["improvement"] < 260
    assert counts["up29"] > counts.get("up1", 0) + 10


@given(
    st.lists(st.tuples(st.integers(0, 30), st.floats(-5, 5), st.booleans()), min_size=1, max_size=30),
    st.integers(1, 8),
    st.integers(1, 4),
    st.integers(0, 99),
)
def test_trajectories_go_from_parents_to_children_and_none_ends_where_another_does(
    made: list[tuple[int, float, bool]], count: int, steps: int, seed: int
) -> None:
    log = Log()
    known = {"c0": log.add("c0", 0.0)}
    for number, (parent, score, failed) in enumerate(made, 1):
        name = f"c{number}"
        known[name] = log.add(name, score, f"c{parent % number}", failed=failed)
    drawn = draw_trajectories(log.buffer.trajectories(100, steps), count, EVENLY, Random(seed))
    assert len(drawn) == min(count, len(made))
    assert len({each.programs[-1] for each in drawn}) == len(drawn)
    for each in drawn:
        assert 1 <= len(each.changes) <= steps
        _check(each, known)


def _check(trajectory: Trajectory, known: dict[str, Candidate]) -> None:
    names = trajectory.programs
    for before, after, change in zip(names, names[1:], trajectory.changes, strict=False):
        assert known[after].parents == (before,)
        if change is None:
            assert known[after].attributes["failure"] is not None
        else:
            assert change == known[after].mean_score - known[before].mean_score
    rises = [change is not None and change > 0 for change in trajectory.changes]
    assert (trajectory.kind == "improvement") == all(rises)


def test_programs_better_than_the_parent_that_came_since() -> None:
    log = Log()
    log.add("a", 1.0)
    for name, score in (("equal", 1.0), ("better", 1.5), ("worse", 0.5)):
        log.add(name, score, "a")
    log.add("failed", 9.0, "a", failed=True)
    assert [log.buffer.better_since(version, 1.0) for version in (0, 2, 3)] == [1, 1, 0]
    assert log.buffer.better_since(0, 0.9) == 3
