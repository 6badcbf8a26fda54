"""Islands: who lives, who may leave, epochs, prompts and their fitness, as functions of the log."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.algorithms.code_evolve.exploration import ExplorationSettings
from flowevolve.algorithms.code_evolve.islands import PROMPTS, Island, Islands
from flowevolve.archives.elites import Best
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import SEED, Add, Annotate, Candidate, Change, Update


def program(
    name: str, score: float, island: int = 0, *, operator: str = "exploit", text: str = "", failure: str | None = None
) -> Candidate:
    known: dict[str, JSON] = {"island": island, "prompt": f"p{island}", "failure": failure, "feedback": ""}
    artifact = Artifact({"program.py": text or name}, "program")
    return Candidate(name, artifact, operator=operator, attributes=known).scored({"one": score})


def migrant(name: str, score: float, of: str, home: int, island: int) -> Candidate:
    made = program(name, score, island, operator="migrate")
    return replace(made, attributes={**made.attributes, "origin": of, "home": home})


def prompt(name: str, score: float, island: int = 0) -> Candidate:
    artifact = Artifact({"instructions": name})
    return Candidate(name, artifact, attributes={"island": island}).scored({"best child": score})


class Log:
    """Commits what it is given, one change at a time."""

    def __init__(self, count: int = 2, size: int = 40, epoch: int = 1, prompts: int = 3) -> None:
        def make(index: int) -> Island:
            return Island(index, Best(size), ExplorationSettings(), epoch=epoch, prompts=prompts)

        self.islands = Islands(count, make)
        self.version = 0
        for index in range(count):
            self.add(prompt(f"p{index}", 0.0, index), pool=PROMPTS)
            self.add(program(f"s{index}", 0.0, index, operator=SEED, text="seed"))

    def add(self, *candidates: Candidate, pool: str = "main") -> None:
        for each in candidates:
            failed = each.attributes.get("failure") is not None
            self.commit(Add(each, "rejected" if failed else "confirmed", pool=pool))

    def commit(self, *changes: Change) -> None:
        self.version += 1
        self.islands.apply(Update(self.version, changes, "0", 0.0))

    def ranked(self, index: int = 0) -> list[str]:
        return [each.id for each in self.islands[index].ranked]


def test_programs_are_ranked_by_score_then_age_and_failures_come_last() -> None:
    log = Log()
    log.add(program("a", -5.0), program("b", 2.0), program("c", 2.0), program("d", 9.0, failure="timeout"))
    assert log.ranked() == ["b", "c", "s0", "a", "d"]
    assert log.ranked(1) == ["s1"]


def test_no_text_lives_twice_on_an_island() -> None:
    log = Log()
    log.add(program("a", 1.0, text="same"), program("b", 1.5, text="same"), program("c", 1.0, 1, text="same"))
    log.add(migrant("m", 1.0, "c", 1, 0))
    assert log.ranked() == ["a", "m", "s0"]
    log.add(program("d", 3.0, text="m"))
    assert "d" not in log.ranked()


def test_the_best_of_all_islands_works() -> None:
    log = Log()
    log.add(program("a", 1.0), program("b", 2.0, 1), program("c", 3.0, 1, failure="no"))
    best = log.islands.best()
    assert best is not None
    assert best.id == "b"


def test_a_prompt_is_worth_its_best_child_and_the_best_prompts_live() -> None:
    log = Log(prompts=2)
    log.add(prompt("a", 0.5), prompt("b", 0.7), pool=PROMPTS)
    assert [each.id for each in log.islands[0].prompts] == ["b", "a"]
    log.commit(Annotate("p0", scores={"best child": 0.9}, pool=PROMPTS))
    assert [(each.id, each.mean_score) for each in log.islands[0].prompts] == [("p0", 0.9), ("b", 0.7)]
    assert log.islands[0].first_prompt.id == "p0"
    assert [each.id for each in log.islands[1].prompts] == ["p1"]


def test_the_last_failure_of_each_prompt_is_remembered() -> None:
    log = Log()
    log.add(program("a", 0.0, failure="one"), program("b", 0.0, failure="two"), program("c", 1.0))
    assert {name: each.id for name, each in log.islands[0].failures.items()} == {"p0": "b"}
    assert log.islands[1].failures == {}


def test_an_epoch_is_so_many_evaluations_of_programs_born_there() -> None:
    log = Log(epoch=2)
    island = log.islands[0]
    log.add(program("a", 1.0))
    assert (island.evaluations, island.epoch_over(), island.exploring.epochs) == (1, False, 0)
    log.add(migrant("m", 5.0, "x", 1, 0), program("other", 3.0, 1))
    assert (island.evaluations, island.epoch_over()) == (1, False)
    log.add(program("b", 0.0, failure="no"))
    assert (island.evaluations, island.epoch_over(), island.exploring.epochs) == (2, True, 1)


def test_epochs_that_bring_nothing_make_an_island_explore_more() -> None:
    log = Log()
    log.add(program("a", 1.0))
    log.add(*(program(f"b{number}", 0.5) for number in range(5)))
    assert log.islands[0].exploring.rate == pytest.approx(0.2 * 1.05)
    assert log.islands[1].exploring.rate == 0.2
    log.add(program("c", 2.0))
    assert log.islands[0].exploring.rate == pytest.approx(0.2)


def test_an_item_has_missed_what_its_own_island_has_seen() -> None:
    log = Log()
    version = log.version
    log.add(program("a", 1.0), program("b", 1.0, 1), program("c", 1.0))
    assert [island.missed(version) for island in log.islands] == [2, 1]
    assert log.islands[0].missed(log.version) == 0


def test_a_pool_with_more_islands_is_refused() -> None:
    with pytest.raises(InputError, match="islands is 2, but has to be at least 3"):
        Log(count=2).add(program("a", 1.0, 2))


# Migration

STEP = st.tuples(
    st.sampled_from(["born", "failed", "arrives", "leave"]),
    st.integers(-3, 30).map(lambda number: number / 10),
    st.integers(0, 2),
)


@given(steps=st.lists(STEP, max_size=60), rate=st.sampled_from([0.1, 0.3, 1.0]))
def test_who_leaves_is_good_local_and_has_not_left_before_nor_is_the_best(
    steps: list[tuple[str, float, int]], rate: float
) -> None:
    log = Log(count=3)
    left: set[str] = set()
    for number, (what, score, index) in enumerate(steps):
        island = log.islands[index]
        if what == "born":
            log.add(program(f"c{number}", score, index))
        elif what == "failed":
            log.add(program(f"c{number}", score, index, failure="no"))
        elif what == "arrives":
            log.add(migrant(f"c{number}", score, f"x{number}", (index + 1) % 3, index))
        else:
            leaving = island.emigrants(rate)
            able = [
                each
                for each in island.ranked
                if each.operator == "exploit" and each.attributes["failure"] is None and each.id not in left
            ]
            able = [each for each in able if each is not island.best]
            assert list(leaving) == able[: max(1, int(rate * len(island.ranked)))]
            for place, each in enumerate(leaving):
                log.add(migrant(f"m{number}-{place}", each.mean_score, each.id, index, (index + 1) % 3))
                left.add(each.id)


@pytest.mark.parametrize(("living", "expected"), [(2, 1), (19, 1), (20, 2), (35, 3)])
def test_a_tenth_of_those_that_live_leave_and_one_at_least(living: int, expected: int) -> None:
    log = Log()
    log.add(*(program(f"c{number}", number) for number in range(1, living)))
    assert len(log.ranked()) == living
    assert len(log.islands[0].emigrants(0.1)) == min(expected, living - 2)
