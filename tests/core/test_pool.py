"""Invariant 2: the version never goes back, statuses move only as allowed, commits apply whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Literal

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from flowevolve._util.errors import EngineError
from flowevolve.core.artifact import Artifact
from flowevolve.core.pool import REJECTED_KEPT, Add, Annotate, Candidate, Change, Move, Note, Pool, Vetoed

ALLOWED = {
    ("proposed", "speculative"),
    ("proposed", "confirmed"),
    ("proposed", "rejected"),
    ("speculative", "confirmed"),
    ("speculative", "revoked"),
}

ADDED: tuple[Literal["speculative", "confirmed", "rejected"], ...] = ("speculative", "confirmed", "rejected")
MOVED: tuple[Literal["confirmed", "revoked"], ...] = ("confirmed", "revoked")


def candidate(name: str, *parents: str) -> Candidate:
    return Candidate(name, Artifact({"prompt": name}), parents)


def commit(pool: Pool, *changes: Change) -> int:
    return pool.commit(changes, cause="item", time=0.0).version


class PoolMachine(RuleBasedStateMachine):
    """Random registrations, rejections and commits against a plain model of what should be."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = Pool(["main", "memory"])
        self.statuses: dict[str, str] = {}
        self.parents: dict[str, tuple[str, ...]] = {}
        self.history: list[dict[str, str]] = [{}]

    @rule(data=st.data())
    def register(self, data: st.DataObject) -> None:
        known = list(self.statuses)
        parents = tuple(data.draw(st.lists(st.sampled_from(known), max_size=2, unique=True))) if known else ()
        name = f"c{len(known)}"
        self.pool.register(candidate(name, *parents))
        self.statuses[name], self.parents[name] = "proposed", parents
        self.history[-1] = dict(self.statuses)

    @precondition(lambda self: self.statuses)
    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.statuses)))
        if self.statuses[name] == "proposed":
            self.pool.reject(name)
            self.statuses[name] = "rejected"
            self.history[-1] = dict(self.statuses)
        else:
            with pytest.raises(EngineError):
                self.pool.reject(name)

    @precondition(lambda self: self.statuses)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        names = data.draw(st.lists(st.sampled_from(sorted(self.statuses)), min_size=1, max_size=3, unique=True))
        changes: list[Change] = [Note("memory", {"n": 1}, pool="memory")]
        wanted: dict[str, str] = {}
        for name in names:
            if data.draw(st.booleans()):
                added = data.draw(st.sampled_from(ADDED))
                changes.append(Add(candidate(name, *self.parents[name]), added))
                wanted[name] = added
            else:
                moved = data.draw(st.sampled_from(MOVED))
                changes.append(Move(name, moved))
                wanted[name] = moved
        before = self.pool.version
        if all((self.statuses[name], status) in ALLOWED for name, status in wanted.items()):
            assert commit(self.pool, *changes) == before + 1
            self.statuses.update(wanted)
            self.history.append(dict(self.statuses))
        else:
            with pytest.raises(EngineError):
                commit(self.pool, *changes)
            assert self.pool.version == before

    @invariant()
    def statuses_agree(self) -> None:
        assert {name: self.pool.status(name) for name in self.statuses} == self.statuses

    @invariant()
    def lineage_of_revoked_is_marked(self) -> None:
        for name in self.statuses:
            assert self.pool.descends_from_revoked([name]) == self._tainted(name)

    def _tainted(self, name: str) -> bool:
        if self.statuses[name] in ("revoked", "confirmed"):
            return self.statuses[name] == "revoked"
        return any(self._tainted(parent) for parent in self.parents[name])

    def teardown(self) -> None:
        for version, statuses in enumerate(self.history):
            for name in self.statuses:
                assert self.pool.snapshot(version).status(name) == statuses.get(name)


TestPoolMachine = PoolMachine.TestCase


def test_updates_between_gives_what_happened_after_up_to() -> None:
    pool = Pool()
    for name in ("a", "b", "c"):
        pool.register(candidate(name))
        commit(pool, Add(candidate(name)))
    assert [update.version for update in pool.updates_between(1, 3)] == [2, 3]
    assert [update.version for update in pool.updates_between(0, 2)] == [1, 2]
    assert [added.id for update in pool.updates_between(2) for added in update.added()] == ["c"]
    assert not pool.updates_between(3)


def test_snapshot_does_not_move_with_the_pool() -> None:
    pool = Pool()
    pool.register(candidate("a"))
    commit(pool, Add(candidate("a")))
    snapshot = pool.snapshot()
    pool.register(candidate("b"))
    commit(pool, Add(candidate("b")))
    assert [each.id for each in snapshot.candidates()] == ["a"]
    assert [each.id for each in pool.snapshot().candidates()] == ["a", "b"]


def test_one_commit_over_two_pools_is_one_version() -> None:
    pool = Pool(["programs", "prompts"])
    for name in ("program", "prompt"):
        pool.register(candidate(name))
    commit(pool, Add(candidate("prompt"), pool="prompts"))
    version = commit(
        pool, Add(candidate("program"), pool="programs"), Annotate("prompt", {"fitness": 1.0}, pool="prompts")
    )
    assert version == 2
    assert pool["prompt"].attributes == {"fitness": 1.0}
    assert [each.id for each in pool.snapshot().candidates(pool="programs")] == ["program"]


@given(st.sampled_from([Note("x", {}, pool="elsewhere"), Move("nobody", "confirmed"), Annotate("nobody")]))
def test_a_bad_change_leaves_nothing_behind(bad: Change) -> None:
    pool = Pool()
    pool.register(candidate("a"))
    with pytest.raises(EngineError):
        commit(pool, Add(candidate("a")), bad)
    assert pool.version == 0
    assert pool.status("a") == "proposed"


@pytest.mark.parametrize("change", [Move("a", "confirmed", pool="prompts"), Annotate("a", {"x": 1}, pool="prompts")])
def test_a_change_names_the_pool_its_candidate_is_in(change: Change) -> None:
    pool = Pool(["programs", "prompts"])
    pool.register(candidate("a"))
    commit(pool, Add(candidate("a"), "speculative", pool="programs"))
    assert pool.pool_of("a") == "programs"
    with pytest.raises(EngineError, match="'programs'"):
        commit(pool, change)
    assert pool.version == 1


def test_a_candidate_rejected_before_any_commit_cannot_be_annotated() -> None:
    pool = Pool()
    for name in ("a", "b"):
        pool.register(candidate(name))
    pool.reject("b")
    with pytest.raises(EngineError, match="rejected"):
        commit(pool, Add(candidate("a")), Annotate("b", {"x": 1}))
    assert pool.version == 0
    assert pool.status("a") == "proposed"


def test_rejected_proposals_keep_their_status_only() -> None:
    pool = Pool()
    pool.register(candidate("a"))
    pool.reject("a")
    assert pool.status("a") == "rejected"
    with pytest.raises(KeyError):
        pool["a"]


@pytest.mark.parametrize(
    "changes",
    [
        (Move("a", "confirmed"), Move("a", "revoked")),
        (Move("a", "revoked"), Move("a", "revoked")),
        (Add(candidate("b")), Add(candidate("b"))),
        (Add(candidate("b"), "speculative"), Move("b", "confirmed")),
    ],
)
def test_a_candidate_changes_its_status_once_in_a_commit(changes: tuple[Change, ...]) -> None:
    pool = Pool()
    for name in ("a", "b"):
        pool.register(candidate(name))
    commit(pool, Add(candidate("a"), "speculative"))
    with pytest.raises(EngineError, match="would change its status twice in one commit"):
        commit(pool, *changes)
    assert (pool.version, pool.status("a"), pool.status("b")) == (1, "speculative", "proposed")


def test_each_ancestor_is_looked_at_once_however_many_ways_lead_to_it() -> None:
    pool = Pool()
    parents: tuple[str, ...] = ()
    for generation in range(60):
        names = (f"a{generation}", f"b{generation}")
        for name in names:
            pool.register(candidate(name, *parents))
        parents = names
    assert not pool.descends_from_revoked(parents)


def test_a_candidate_is_registered_once_and_after_its_parents() -> None:
    pool = Pool()
    pool.register(candidate("a"))
    with pytest.raises(EngineError, match="a is registered already"):
        pool.register(candidate("a"))
    with pytest.raises(EngineError, match="b names an unknown parent c"):
        pool.register(candidate("b", "a", "c"))
    assert "a" in pool
    assert "b" not in pool


def test_a_commit_without_a_change_is_refused() -> None:
    with pytest.raises(EngineError, match="item item: a commit needs at least one change"):
        commit(Pool())


def test_the_texts_of_the_last_rejected_proposals_are_kept() -> None:
    pool = Pool()
    names = [str(number) for number in range(REJECTED_KEPT + 2)]
    for name in names:
        pool.register(candidate(name))
        pool.reject(name)
        assert not pool.keeps(name)
    kept = [name for name in names if pool.rejected(name) is not None]
    assert kept == names[2:]
    assert pool.rejected("5") == candidate("5")


def test_annotations_and_moves_change_what_they_name_and_leave_the_rest() -> None:
    pool = Pool()
    pool.register(candidate("a"))
    commit(pool, Add(candidate("a").scored({"x": 0.5}), "speculative"))
    commit(pool, Annotate("a", {"length": 3}), Annotate("a", {"kind": "short"}))
    assert (pool["a"].attributes, pool["a"].scores) == ({"length": 3, "kind": "short"}, {"x": 0.5})
    commit(pool, Annotate("a", {"length": 4}, {"x": 0.25}))
    assert (pool["a"].attributes, pool["a"].scores) == ({"length": 4, "kind": "short"}, {"x": 0.25})
    commit(pool, Move("a", "confirmed", {"x": 1.0, "y": 0.0}))
    assert (pool["a"].mean_score, pool.status("a")) == (0.5, "confirmed")
    assert pool["a"].attributes == {"length": 4, "kind": "short"}
    assert candidate("b").mean_score == 0.0


def test_a_veto_hides_a_candidate_until_it_is_taken_back() -> None:
    pool = Pool(["programs", "prompts"])
    for name in ("a", "b"):
        pool.register(candidate(name))
    commit(pool, Add(candidate("a"), pool="programs"), Add(candidate("b"), pool="prompts"))
    with pytest.raises(EngineError, match="is in pool 'programs', not in 'prompts'"):
        commit(pool, Vetoed("a", pool="prompts"))

    def shown(*, vetoed: bool = False) -> list[str]:
        return [each.id for each in pool.snapshot().candidates(pool="programs", vetoed=vetoed)]

    commit(pool, Vetoed("a", pool="programs"))
    assert (shown(), shown(vetoed=True), pool.vetoed("a"), pool.vetoed("b")) == ([], ["a"], True, False)
    commit(pool, Vetoed("a", stands=False, pool="programs"))
    assert (shown(), pool.vetoed("a")) == (["a"], False)


def test_snapshots_give_the_statuses_that_are_asked_for_as_they_were() -> None:
    pool = Pool()
    for name in ("a", "b", "c"):
        pool.register(candidate(name))
    commit(pool, Add(candidate("a"), "speculative"), Add(candidate("b"), "rejected"))
    commit(pool, Move("a", "confirmed"))
    pool.register(candidate("d"))
    first = pool.snapshot(1)
    assert [each.id for each in first.candidates("speculative", "rejected")] == ["a", "b"]
    assert not list(first.candidates())
    assert (first.status("a"), first.status("d"), pool.snapshot().status("a")) == ("speculative", None, "confirmed")
    assert [each.id for each in pool.snapshot().candidates()] == ["a"]
    assert [each.id for each in pool.updates_between(0, 1)[0].added()] == ["a"], "what was rejected can't be selected"
    assert [(name, each.id) for name, each in pool.candidates()] == [
        ("main", "a"),
        ("main", "b"),
        (None, "c"),
        (None, "d"),
    ]


@pytest.mark.parametrize("score", [nan, inf])
def test_a_score_that_is_no_finite_number_is_refused_with_its_example(score: float) -> None:
    assert candidate("c1").scored({"a": 0.5, "b": -inf}).mean_score == -inf, "as gepa's users score failures"
    refusal = f"candidate 'c1': its score on example 'b' is {score}, but scores have to be finite numbers"
    with pytest.raises(EngineError, match=refusal):
        candidate("c1").scored({"a": 0.5, "b": score})
    pool = Pool()
    pool.register(candidate("c1"))
    with pytest.raises(EngineError, match=refusal):
        pool.commit([Add(replace(candidate("c1"), scores={"b": score}))], cause="i", time=0.0)
    pool.commit([Add(candidate("c1"), "speculative")], cause="i", time=0.0)
    for change in (Annotate("c1", scores={"b": score}), Move("c1", "confirmed", {"b": score})):
        with pytest.raises(EngineError, match=refusal):
            pool.commit([change], cause="i", time=0.0)
    assert (pool.version, pool.status("c1")) == (1, "speculative"), "what was refused has changed nothing"
