"""CSE as a stream and in lockstep: what is stale and how it is renewed, other tasks' experience, going on after a stop."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

import flowevolve as fe
from flowevolve.algorithms.cse.memory import Memory, NewDigest, NewLesson, render
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.pool import Add, Note, Pool
from flowevolve.policies.staleness import Guarded, Reflective
from flowevolve.prompts.memory import BOARD_HEADING, COMPRESS_TITLE, DISTILL_TITLE, QUERIES_TITLE
from flowevolve.prompts.plans import IMPLEMENT_TITLE
from flowevolve.prompts.programs import OUTCOME_HEADING
from tests.support.cse_running import Ran, algorithm, asked, evaluated, ran, selected, titles
from tests.support.depth import cuts
from tests.support.interruption import Fact, events_of
from tests.support.nearest import evolve_nearest
from tests.support.part_programs import Agents, Parts


def contents(pool: Pool) -> list[object]:
    """All that is in the pools, and how it got there."""
    return [
        (name, each.id, each.artifact.id, each.parents, dict(each.scores), dict(each.attributes), pool.status(each.id))
        for name, each in pool.candidates()
    ]


def notes(pool: Pool) -> list[object]:
    updates = pool.updates_between(0)
    return [(each.kind, each.data) for update in updates for each in update.changes if isinstance(each, Note)]


def memory_at(pool: Pool, version: int) -> str:
    return render(Memory.as_of(pool.updates_between(0, version)))


# The published form


def test_in_lockstep_one_wide_each_step_makes_one_child_from_what_the_step_before_has_learnt() -> None:
    evolved, report, facts = ran(algorithm(compress_tokens=10_000), mode="sync", max_in_flight=1)
    first = len(evaluated(report.pool)) - len(selected(facts))
    assert first == 6
    prompts = asked(facts, "write")[5:]
    lessons: list[str] = []
    for number, data in enumerate(selected(facts)):
        version = cast(int, data["version"])
        assert data["step"] == number + 1
        updates = report.pool.updates_between(version - 1, version + 1)
        learnt = [each.data for update in updates for each in update.changes if isinstance(each, Note)]
        children = [each.candidate for each in updates[1].changes if isinstance(each, Add)]
        assert len(children) == 1
        assert children[0].parents == tuple(cast("list[str]", data["parents"]))
        if number:
            assert learnt[0]["lesson"] in lessons
            assert memory_at(report.pool, version) in prompts[number]
        lessons.append(str(learnt[-1]["lesson"]))
    assert len(prompts) == len(lessons) == len(selected(facts)) == 25
    assert report.staleness.seen == 0
    assert evolved.memory.conflicts == 0


def test_there_no_step_reads_a_memory_that_is_about_to_be_shortened() -> None:
    _, report, facts = ran(algorithm(compress_tokens=120), mode="sync", max_in_flight=1)
    read = [cast(int, event.data["version"]) for event in events_of(facts, "memory.read")]
    shortened = [
        update.version
        for update in report.pool.updates_between(0)
        if any(isinstance(change, Note) and change.kind == NewDigest.kind for change in update.changes)
    ]
    assert shortened
    assert not {version - 1 for version in shortened} & set(read)
    assert set(shortened[:-1]) <= set(read)


def test_in_both_forms_one_flow_at_a_time_takes_the_same_decisions() -> None:
    stream = ran(algorithm(compress_tokens=300), max_in_flight=1)
    steps = ran(algorithm(compress_tokens=300), max_in_flight=1, mode="sync")
    assert sorted(map(str, contents(stream[1].pool))) == sorted(map(str, contents(steps[1].pool)))
    assert notes(stream[1].pool) == notes(steps[1].pool)


# Staleness


def taken(facts: list[Fact], stage: str) -> list[Event]:
    return [event for event in events_of(facts, "item.taken") if event.data["stage"] == stage]


def test_a_child_that_is_not_written_yet_is_written_by_what_is_known_now() -> None:
    _, report, facts = ran(algorithm(compress_tokens=10_000), staleness=Reflective(), budget=fe.Budget(evaluations=60))
    judged = Counter(event.data["judged"] for event in taken(facts, "write"))
    assert judged["repair"] > 5
    assert report.staleness.repaired == judged["repair"]
    renewed = [event for event in events_of(facts, "memory.read") if event.data["stage"] == "renew"]
    assert len(renewed) == judged["repair"]
    prompts = asked(facts, "write")
    for event in renewed:
        text = str(event.data["text"])
        assert text == memory_at(report.pool, cast(int, event.data["version"]))
        assert any(text in prompt for prompt in prompts)


def test_guarded_children_of_an_old_memory_are_discarded_and_written_ones_never() -> None:
    _, report, facts = ran(staleness=Guarded(max_gap=0), budget=fe.Budget(evaluations=40))
    reasons = {name: stage.counts.reasons.get("stale", 0) for name, stage in report.stages.items()}
    assert reasons["write"] > 0
    assert not any(reasons[name] for name in ("evaluate", "reflect", "update", "compress"))
    assert {event.data["gap"] for event in taken(facts, "reflect")} == {0}


def test_without_a_local_memory_nothing_is_stale() -> None:
    _, report, _ = ran(algorithm(local_memory=False), staleness=Guarded(max_gap=0))
    assert report.staleness.seen == 0


# Experience with other tasks


def with_memory(folder: Path, **settings: Any) -> dict[str, Any]:
    return {"memory": {"location": str(folder), "embedding": {"by": "hashing"}}, **settings}


def test_what_one_run_has_learnt_the_next_one_recalls(tmp_path: Path) -> None:
    settings = with_memory(tmp_path / "memory")
    _, report, facts = ran(algorithm(**settings))
    assert report.error is None
    assert QUERIES_TITLE not in titles(facts)
    assert [prompt.startswith(DISTILL_TITLE) for prompt in asked(facts)].count(True) == 1
    (distilled,) = events_of(facts, "memory.distilled")
    assert distilled.data["entries"] == [{"task": "parts", "title": "sums", "text": "Make each number larger."}]
    _, _, later = ran(algorithm(**settings))
    assert QUERIES_TITLE in titles(later)
    assert all("Make each number larger." in prompt for prompt in asked(later, "write"))
    for_plans = [prompt for prompt in asked(later, "recall") if "plan number" in prompt]
    assert len(for_plans) == 5
    assert all(OUTCOME_HEADING not in prompt for prompt in for_plans)
    assert events_of(later, "memory.looked")[-1].data["entries"] == 1


@pytest.mark.parametrize("evolution", [True, False])
def test_without_plans_the_first_programs_recall_by_the_seed(tmp_path: Path, evolution: bool) -> None:
    ran(algorithm(**with_memory(tmp_path / "memory")))
    _, report, facts = ran(algorithm(**with_memory(tmp_path / "memory", planning=False, evolution=evolution)))
    assert report.error is None
    first = asked(facts, "write")[:5]
    assert all(prompt.startswith(IMPLEMENT_TITLE) and "Make each number larger." in prompt for prompt in first)
    assert sum(OUTCOME_HEADING not in prompt for prompt in asked(facts, "recall")) == 5


@pytest.mark.parametrize("local_memory", [True, False])
def test_for_global_memory_alone_a_run_learns_without_showing_it(tmp_path: Path, local_memory: bool) -> None:
    _, report, facts = ran(algorithm(**with_memory(tmp_path / "memory", local_memory=local_memory, compress_tokens=60)))
    assert report.error is None
    assert (COMPRESS_TITLE in titles(facts)) is local_memory
    assert events_of(facts, "memory.distilled")
    assert any("Lesson" in prompt for prompt in asked(facts, "write")) is local_memory
    assert any(BOARD_HEADING in prompt for prompt in asked(facts, "reflect")) is local_memory


# Figures of efficiency problems


def test_parents_are_sampled_by_the_integral_and_the_best_has_its_figures() -> None:
    evolved, report, _ = ran(algorithm(Parts(integral=True)))
    assert report.error is None
    best = evolved.best()
    assert best is not None
    metrics = cast("dict[str, float]", best.attributes["metrics"])
    assert metrics["mi"] == pytest.approx(best.mean_score / 2)
    (step, *_) = evolved.memory.improving
    assert step.change > 0


# Going on


def state(run: Ran) -> list[object]:
    evolved, report, _ = run
    return [contents(report.pool), notes(report.pool), render(evolved.memory), evolved.memory.improving]


def test_interrupted_anywhere_a_run_one_flow_wide_ends_as_it_would_have() -> None:
    options: dict[str, Any] = {"max_in_flight": 1, "budget": fe.Budget(evaluations=12)}
    settings: dict[str, Any] = {"compress_tokens": 60, "plans": 2}
    whole = ran(algorithm(**settings), **options)
    facts = whole[2]
    assert NewDigest.kind in {kind for kind, _ in cast("list[tuple[str, object]]", notes(whole[1].pool))}
    for cut in cuts(facts, 7):
        assert state(ran(algorithm(**settings), facts[:cut], **options)) == state(whole), cut


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_interrupted_with_many_flows_nothing_is_done_twice(share: float) -> None:
    _, _, facts = ran()
    _, report, combined = ran(before=facts[: int(share * len(facts))])
    assert report.spent.evaluations >= 31
    kept = [(event.data["item"], event.data["key"]) for event in events_of(combined, "rollout.kept")]
    assert len(kept) == len(set(kept))
    learnt = [str(data["candidate"]) for kind, data in cast("list[Any]", notes(report.pool)) if kind == NewLesson.kind]
    assert len(learnt) == len(set(learnt))


def test_a_stop_between_evaluation_and_reflection_loses_neither() -> None:
    _, _, facts = ran(max_in_flight=1)
    assessed = [place for place, fact in enumerate(facts) if isinstance(fact, Event) and _reflects(fact)]
    assert len(assessed) > 20
    for place in assessed[7:13:2]:
        _, report, combined = ran(before=facts[: place + 1], max_in_flight=1)
        item = facts[place]
        assert isinstance(item, Event)
        reflected = [
            fact
            for fact in combined
            if isinstance(fact, CallRecord) and fact.scope.stage == "reflect" and fact.scope.item == item.data["item"]
        ]
        assert len(reflected) == 1
        kept = [(event.data["item"], event.data["key"]) for event in events_of(combined, "rollout.kept")]
        assert len(kept) == len(set(kept))
        learnt = [
            str(data["candidate"]) for kind, data in cast("list[Any]", notes(report.pool)) if kind == NewLesson.kind
        ]
        assert learnt == [each.id for each in evaluated(report.pool) if each.parents]


def _reflects(event: Event) -> bool:
    return event.kind == "item.taken" and event.data["stage"] == "reflect"


def test_a_stop_while_calls_are_under_way_asks_the_same_again() -> None:
    """Prompts of children are settled by decisions: after a stop they are what they were, so no reply is wasted."""
    slow = Agents(seconds=5.0)
    _, _, facts = ran(agents=slow, budget=fe.Budget(evaluations=20))
    middle = facts[: len(facts) // 2]
    _, _, combined = ran(before=middle, agents=Agents(seconds=5.0), budget=fe.Budget(evaluations=20))
    scopes = Counter(
        (fact.scope.stage, fact.scope.item, fact.scope.index) for fact in combined if isinstance(fact, CallRecord)
    )
    assert max(scopes.values()) == 1


# Real programs


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_with_simulated_agents_real_programs_get_better(mode: str) -> None:
    result = evolve_nearest({"name": "cse", "mode": mode, "width": 1, "max_in_flight": 6})
    assert result.report.error is None
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score * 0.6  # both are negative
