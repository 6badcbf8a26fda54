"""generate and evaluate with speculation, holding back, reordering and racing, in whole runs on the simulated server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import anyio
import pytest

from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.algorithms.gepa.validation_order import ValidationOrder
from flowevolve.config.run import parse_config
from flowevolve.core.artifact import Artifact
from flowevolve.core.calls import CallRecord
from flowevolve.core.event_kinds import CandidateProposed
from flowevolve.core.events import Event
from flowevolve.core.pool import Add, Candidate, Move, Update
from flowevolve.core.task import ChatModel, Dataset, Example, Rollout, Score
from flowevolve.runner.assemble import make_algorithm, make_task
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.tasks.house_style import house_style_task

TASK = house_style_task(make_rows(rules=10, per_example=3, overlap=0.3, rows=60, seed=1))
VAL = tuple(example.id for example in TASK.data.val)


@dataclass
class Commit:
    """One pool update as the log has it."""

    version: int
    best: str | None
    changes: Sequence[Mapping[str, object]]


@dataclass
class Outcome:
    result: Result
    events: list[Event]
    calls: list[CallRecord]
    commits: list[Commit] = field(default_factory=list)

    def __post_init__(self) -> None:
        for event in self.events:
            if event.kind == "pool.commit":
                changes, best = event.data["changes"], event.data["best"]
                assert isinstance(changes, list)
                found = [change for change in changes if isinstance(change, dict)]
                self.commits.append(Commit(len(self.commits) + 1, None if best is None else str(best), found))

    def of_kind(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def examples_called(self, candidate: str) -> list[str]:
        """Example ids that a candidate was validated on, in the order the calls were made."""
        calls = [call for call in self.calls if (call.scope.stage, call.scope.candidate) == ("evaluate", candidate)]
        return [call.scope.item.partition("/")[2] for call in sorted(calls, key=lambda call: call.queued)]


def evolve(
    *,
    width: int = 6,
    seed: int = 0,
    proposals: int = 40,
    algorithm: Mapping[str, object] | None = None,
    policy: str = "full",
    **sections: object,
) -> Outcome:
    events: list[Event] = []
    calls: list[CallRecord] = []
    config = parse_config(
        {
            "preset": "plain",
            "seed": seed,
            "clock": "virtual",
            "algorithm": {"max_in_flight": width, **(algorithm or {})},
            "staleness": {"policy": policy},
            "budget": {"proposals": proposals},
            **sections,
        },
        "test",
    )

    async def go() -> Result:
        return await run(config, task=TASK, watchers=Watchers(events=(events.append,), calls=(calls.append,)))

    return Outcome(clock.run(go, clock="virtual"), events, calls)


def scores(change: Mapping[str, object]) -> dict[str, float]:
    found = change["scores"]
    assert isinstance(found, dict)
    return {name: float(score) for name, score in found.items()}


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.6])
def test_releases_and_verdicts_are_what_the_scores_say(alpha: float) -> None:
    outcome = evolve(speculation={"alpha": {"evaluate": alpha}}, proposals=60)
    prefix = VAL[: -(-int(alpha * 100) * len(VAL) // 100)]
    full: dict[str, dict[str, float]] = {}
    best: list[str | None] = [None]
    released = verdicts = 0
    for commit in outcome.commits:
        lately = [full[name] for name in best[-3:] if name is not None]
        (change,) = commit.changes
        if change.get("status") == "speculative":
            released += 1
            partial = scores(change)
            assert set(partial) == set(prefix)
            mean = fmean(partial.values())
            assert any(mean > fmean(each[name] for name in prefix) for each in lately)
        elif "move" in change:
            verdicts += 1
            better = sum(scores(change).values()) > sum(full[str(best[-1])].values())
            assert change["status"] == ("confirmed" if better else "revoked")
            full[str(change["move"])] = scores(change)
        else:
            full[str(change["add"])] = scores(change)
        best.append(commit.best)
    counts = outcome.result.report.speculation
    assert released == counts.released > 3
    assert verdicts == counts.confirmed + counts.revoked == released
    assert all(set(each) == set(VAL) for each in full.values())


def test_without_alpha_nothing_is_released() -> None:
    assert evolve().result.report.speculation.released == 0


def test_released_candidates_are_selected_as_parents_before_their_verdict() -> None:
    outcome = evolve(speculation={"alpha": {"evaluate": 0.1}}, proposals=100, width=24)
    statuses: dict[str, str] = {}
    chosen = set()
    for event in outcome.events:
        if event.kind == "pool.commit":
            changes = event.data["changes"]
            assert isinstance(changes, list)
            for change in changes:
                assert isinstance(change, dict)
                statuses[str(change.get("add", change.get("move")))] = str(change["status"])
        elif event.kind == "gepa.selected":
            parents = event.data["parents"]
            assert isinstance(parents, list)
            chosen.add(statuses[str(parents[0])])
    assert chosen == {"confirmed", "speculative"}


def test_held_back_requests_of_a_stopped_candidate_are_never_made() -> None:
    speculation = {"alpha": {"evaluate": 0.3}, "hold": True}
    outcome = evolve(
        speculation=speculation, racing={"policy": "prefix"}, algorithm={"validation": "improvement"}, proposals=60
    )
    prefix = VAL[: -(-30 * len(VAL) // 100)]
    stopped = outcome.of_kind("evaluation.stopped")
    at_prefix = [event for event in stopped if event.data["finished"] == len(prefix)]
    assert len(at_prefix) > 3
    for event in at_prefix:
        assert set(outcome.examples_called(str(event.data["candidate"]))) == set(prefix)
        assert event.data["saved"] == len(VAL) - len(prefix)


def test_without_holding_back_all_requests_are_made_at_once() -> None:
    outcome = evolve(speculation={"alpha": {"evaluate": 0.3}})
    for candidate in {call.scope.candidate for call in outcome.calls if call.scope.stage == "evaluate"}:
        calls = [c for c in outcome.calls if (c.scope.stage, c.scope.candidate) == ("evaluate", candidate)]
        assert len({call.queued for call in calls}) == 1
        urgent = {call.scope.item.partition("/")[2] for call in calls if call.scope.priority % 2 == 0}
        assert urgent == set(VAL[: -(-30 * len(VAL) // 100)])


def test_what_was_held_back_is_behind_the_prefixes_of_other_evaluations() -> None:
    outcome = evolve(speculation={"alpha": {"evaluate": 0.3}, "hold": True}, proposals=12)
    ranks: dict[bool, set[int]] = {True: set(), False: set()}
    for call in outcome.calls:
        if call.scope.stage == "evaluate":
            ranks[call.scope.item.partition("/")[2] in VAL[:6]].add(call.scope.priority)
    assert max(ranks[True]) < min(ranks[False])


def test_racing_cancels_on_the_wire_and_counts_what_it_saved() -> None:
    outcome = evolve(racing={"policy": "bound"}, algorithm={"validation": "improvement"}, proposals=60)
    stopped = outcome.of_kind("evaluation.stopped")
    racing = outcome.result.report.racing
    assert racing.stopped == len(stopped) > 3
    assert racing.rollouts_saved == sum(int(str(event.data["saved"])) for event in stopped)
    assert racing.tokens_saved > 0
    assert outcome.result.cancelled > 0
    run, begun = outcome.result.report.stages["evaluate"].counts.rollouts, outcome.result.report.spent.evaluations
    # What came in at the very instant of the stop was run all the same.
    assert 0 <= run + racing.rollouts_saved - begun * len(VAL) <= racing.stopped
    for event in stopped:
        candidate = str(event.data["candidate"])
        assert outcome.result.report.pool.status(candidate) == "rejected"
        assert int(str(event.data["finished"])) <= len(outcome.examples_called(candidate)) < len(VAL)


def test_racing_changes_no_decision_when_it_is_sound() -> None:
    """One at a time, so that nothing depends on when: what is stopped is what would have been turned down."""
    plain = evolve(width=1, algorithm={"validation": "improvement"})
    raced = evolve(width=1, algorithm={"validation": "improvement"}, racing={"policy": "bound"})
    assert raced.result.report.racing.stopped > 0
    assert [commit.changes for commit in raced.commits] == [commit.changes for commit in plain.commits]
    assert raced.result.llm.usage.completion_tokens < plain.result.llm.usage.completion_tokens


def test_with_gepas_own_acceptance_nothing_is_hopeless() -> None:
    assert evolve(racing={"policy": "bound"}).result.report.racing.stopped == 0
    with pytest.raises(InputError, match=r"algorithm\.validation"):
        evolve(racing={"policy": "confidence"}, algorithm={"validation": "everything"})


def test_the_order_is_the_one_reordering_gives() -> None:
    outcome = evolve(
        width=1,
        speculation={"alpha": {"evaluate": 0.3}, "hold": True, "reorder": True, "window": 1},
        algorithm={"validation": "everything"},
        proposals=60,
    )
    order = ValidationOrder(VAL, window=1)
    size = -(-30 * len(VAL) // 100)
    prefixes = set()
    for commit in outcome.commits:
        (change,) = commit.changes
        name = str(change.get("add", change.get("move")))
        if change["status"] != "speculative" and "add" in change:
            first = outcome.examples_called(name)[:size]
            assert set(first) == set(order()[:size])
            prefixes.add(frozenset(first))
        candidate = Candidate(name, Artifact({"p": name})).scored(scores(change))
        entered = Add(candidate) if change["status"] != "speculative" else Add(candidate, "speculative")
        moved = Move(name, "confirmed", scores(change))
        order.apply(Update(commit.version, (entered if "add" in change else moved,), "item", 0.0))
    assert len(prefixes) > 2


def test_a_minibatch_goes_on_in_parts() -> None:
    outcome = evolve(speculation={"alpha": {"generate": 0.34}}, policy="guarded", proposals=60)
    screened = outcome.of_kind("candidate.screened")
    sizes = {len(event.data["baseline"]) for event in screened if isinstance(event.data["baseline"], list)}
    assert sizes <= {1, 2}
    assert 2 in sizes
    selected = outcome.of_kind("gepa.selected")
    assert len([e for e in outcome.of_kind("candidate.proposed") if e.data["operator"] == "reflect"]) > len(selected)


@pytest.mark.parametrize("policy", ["guarded", "reflective"])
def test_guarded_ends_what_was_made_from_a_revoked_candidate_and_merge_survives_it(policy: str) -> None:
    became: Counter[str] = Counter()
    stale = 0
    for seed in range(3):
        outcome = evolve(
            seed=seed,
            speculation={"alpha": {"evaluate": 0.06}},
            algorithm={"merge": True, "validation": "improvement"},
            staleness={"policy": policy, **({"max_gap": 1000} if policy == "guarded" else {})},
            proposals=60,
            width=12,
        )
        report = outcome.result.report
        assert report.error is None
        assert report.speculation.revoked > 0
        proposed = [event.body for event in outcome.events if isinstance(event.body, CandidateProposed)]
        heirs = {
            each.candidate for each in proposed if any(report.pool.status(name) == "revoked" for name in each.parents)
        }
        became.update(report.pool.status(name) for name in heirs)
        stale += sum(
            event.kind == "candidate.rejected" and event.data["candidate"] in heirs and event.data["reason"] == "stale"
            for event in outcome.events
        )
    assert became
    assert set(became) <= {"rejected", "revoked", "confirmed"}, "none is left on its way"
    assert stale == (sum(became.values()) if policy == "guarded" else 0)


def test_a_stage_that_cannot_speculate_is_named() -> None:
    with pytest.raises(
        InputError, match=r"speculation\.alpha: GEPA can speculate in generate, evaluate, not in screen"
    ):
        evolve(speculation={"alpha": {"screen": 0.5}})


def test_racing_by_prefix_does_not_lock_a_run_whose_best_is_perfect_there() -> None:
    outcome = evolve(
        seed=2,
        speculation={"alpha": {"evaluate": 0.05}, "hold": True},
        racing={"policy": "prefix"},
        policy="reflective",
        proposals=60,
        llm={"retries": 0},
    )
    pool = outcome.result.report.pool
    best = [pool[name] for name in dict.fromkeys(commit.best for commit in outcome.commits) if name is not None]
    assert sum(each.scores[VAL[0]] == 1.0 for each in best) > 1


def test_scores_above_the_ceiling_end_the_run_by_naming_the_setting() -> None:
    with pytest.raises(InputError, match=r"racing\.ceiling"):
        evolve(racing={"policy": "bound", "ceiling": 0.5}, algorithm={"validation": "improvement"})


@dataclass
class Misleading:
    """House style whose first validation example likes long prompts, and the others short ones, the later the longer."""

    name: str = "misleading"
    data: Dataset = field(default_factory=lambda: replace(TASK.data, val=TASK.data.val[:4]))

    def seed(self) -> Artifact:
        return TASK.seed()

    async def rollout(self, artifact: Artifact, example: Example, llm: ChatModel) -> Rollout:
        rollout = await TASK.rollout(artifact, example, llm)
        longer = sum(map(len, artifact.values())) - sum(map(len, TASK.seed().values()))
        if example.id in VAL[1:4]:
            await anyio.sleep(60 + 3 * longer)
            return replace(rollout, score=Score(0.0 if longer else 0.9, "be short", passed=False))
        return replace(rollout, score=Score(1 - 4 / (8 + longer), "write more", passed=False))


def test_no_flow_is_opened_on_what_a_revoked_candidate_left_behind() -> None:
    """With one parent at a time, every flow would be discarded as it opens, and the next one opened in the same instant."""
    opened: Counter[float] = Counter()

    def watch(event: Event) -> None:
        opened[event.time] += event.kind == "flow.open"
        assert opened[event.time] <= 100

    table = {
        "preset": "plain",
        "clock": "virtual",
        "algorithm": {"max_in_flight": 12, "candidate_selection": "top_k_pareto", "top_k": 1},
        "speculation": {"alpha": {"evaluate": 0.25}},
        "budget": {"proposals": 100},
    }

    async def go() -> Result:
        return await run(parse_config(table, "test"), task=Misleading(), watchers=Watchers(events=(watch,)))

    assert clock.run(go, clock="virtual").report.speculation.revoked > 3


@pytest.mark.parametrize("reorder", [False, True])
def test_what_is_judged_by_a_sample_is_not_run_in_the_order_of_the_file(reorder: bool) -> None:
    speculation = {"alpha": {"evaluate": 0.5}, "hold": True, "reorder": reorder}
    outcome = evolve(racing={"policy": "confidence"}, speculation=speculation, proposals=4)
    seed = outcome.commits[0].best
    assert seed is not None
    run = outcome.examples_called(seed)
    assert sorted(run) == sorted(VAL)
    assert set(run[:9]) != set(VAL[:9])
    assert tuple(outcome.result.report.pool[seed].scores) == VAL


@pytest.mark.parametrize(
    ("section", "setting", "value"),
    [
        ("speculation", "alpha", {"evaluate": 0.5}),
        ("speculation", "hold", True),
        ("speculation", "reorder", True),
        ("racing", "policy", "bound"),
    ],
)
@pytest.mark.parametrize(
    ("algorithm", "task"),
    [("ace", "house_style")]
    + [(name, "program") for name in ("levi", "cse", "code_evolve", "context_evolve", "best_of_n", "one_plus_lambda")],
)
def test_algorithms_that_neither_speculate_nor_race_say_so(
    section: str, setting: str, value: object, algorithm: str, task: str
) -> None:
    named = {"name": task, **({"problem": "tsp_construction"} if task == "program" else {})}
    table = {"algorithm": {"name": algorithm}, "task": named, "budget": {"proposals": 1}, section: {setting: value}}
    config = parse_config(table, "test")
    with pytest.raises(InputError, match=rf"^{section}\.{setting}: algorithm {algorithm} "):
        make_algorithm(config, make_task(config))


@pytest.mark.parametrize("alpha", [{}, {"evaluate": 1.0}, {"generate": 0.5}])
def test_racing_by_a_prefix_needs_one(alpha: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"racing\.policy .* speculation\.alpha\.evaluate below 1"):
        evolve(racing={"policy": "prefix"}, speculation={"alpha": alpha})


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("width", [6, 64])
def test_samples_in_parts_keep_to_a_budget_of_proposals(alpha: float, width: int) -> None:
    report = evolve(speculation={"alpha": {"generate": alpha}}, proposals=40, width=width).result.report
    assert 30 < report.spent.proposals <= 40
    assert not report.overshoot


@pytest.mark.parametrize(
    "sections", [{"policy": "reflective"}, {"policy": "reflective", "speculation": {"alpha": {"evaluate": 0.5}}}]
)
def test_items_out_are_what_a_stage_worked_on(sections: Mapping[str, Any]) -> None:
    outcome = evolve(proposals=60, width=16, **sections)
    counts = outcome.result.report.stages["evaluate"].counts
    done = [event.data for event in outcome.of_kind("item.done") if event.data["stage"] == "evaluate"]
    assert any(each["reason"] == "sent to repair" for each in done)
    assert counts.items_out == sum(each["outcome"] == "consumed" and not each["reason"] for each in done) > 3
