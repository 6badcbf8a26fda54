"""ContextEvolve as a stream and in lockstep: guidance that many steps share, what goes stale, going on after a stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, cast

import pytest

import flowevolve as fe
from flowevolve.core.events import Event
from flowevolve.core.pool import Pool
from flowevolve.policies.staleness import Reflective
from flowevolve.prompts.abstracts import NAVIGATE_TITLE
from tests.support.context_evolving import Agents, algorithm, asked, programs, ran, said
from tests.support.depth import cuts
from tests.support.interruption import Fact, events_of
from tests.support.nearest import evolve_nearest

GUIDED, NAVIGATED = "context_evolve.guided", "context_evolve.navigated"


def ages(facts: Sequence[Fact]) -> list[int]:
    """How many commits old its guidance was when a step came by, of all steps that had some."""
    now, found = 0, []
    for fact in facts:
        if isinstance(fact, Event) and fact.kind == "pool.commit":
            now = cast(int, fact.data["version"])
        elif isinstance(fact, Event) and fact.kind == NAVIGATED and fact.data["version"] is not None:
            found.append(now - cast(int, fact.data["version"]))
    return found


def test_one_step_at_a_time_guidance_is_that_of_the_pool_as_it_is() -> None:
    _, _, facts = ran(max_in_flight=1)
    assert set(ages(facts)) == {0}
    versions = [data["version"] for data in said(facts, GUIDED)]
    assert len(set(versions)) == len(versions) == len(asked(facts, NAVIGATE_TITLE)) > 40


def test_steps_in_flight_share_guidance_and_it_is_never_older_than_said() -> None:
    evolved = algorithm(guidance_age=6)
    _, _, facts = ran(evolved, max_in_flight=12, budget=fe.Budget(evaluations=150))
    assert 0 < max(ages(facts)) <= 6
    assert len(asked(facts, NAVIGATE_TITLE)) < len(ages(facts)) / 2
    versions = Counter(data["version"] for data in said(facts, GUIDED))
    assert set(versions.values()) == {1}


def test_by_default_guidance_may_be_as_old_as_what_is_in_flight() -> None:
    _, _, facts = ran(max_in_flight=12, budget=fe.Budget(evaluations=150))
    assert 3 < max(ages(facts)) <= 11
    assert len(asked(facts, NAVIGATE_TITLE)) < len(ages(facts)) / 3


def test_steps_go_on_with_guidance_of_before_while_newer_is_made() -> None:
    """A Navigator that takes long holds up the step that asks it, and no other."""
    _, slow, facts = ran(agents=Agents(seconds=30), max_in_flight=8, budget=fe.Budget(evaluations=80))
    calls = events_of(facts, GUIDED)
    assert calls
    waits = [each for each in said(facts, NAVIGATED) if not each["makes"] and each["version"] is not None]
    settled = {event.data["version"]: event.seq for event in calls}
    at_once = [
        event
        for event in events_of(facts, NAVIGATED)
        if not event.data["makes"] and settled.get(event.data["version"], event.seq) < event.seq
    ]
    assert len(at_once) > len(waits) / 2
    assert slow.error is None


def test_where_the_call_fails_another_step_takes_over() -> None:
    """All eight begin at once; those that waited for the first don't wait for ever, nor all ask at once."""
    _, report, facts = ran(agents=Agents(refused=0.5), max_in_flight=8, budget=fe.Budget(evaluations=80))
    assert report.error is None
    assert len(programs(report.pool)) >= 70
    versions = Counter(data["version"] for data in said(facts, GUIDED))
    assert set(versions.values()) == {1}
    makes = [data for data in said(facts, NAVIGATED) if data["makes"]]
    assert len(makes) > len(versions)


def test_in_lockstep_a_step_is_guided_once() -> None:
    evolved, _, facts = ran(mode="sync", max_in_flight=4)
    stages = [str(event.data["stage"]) for event in events_of(facts, "item.taken")][3:]
    order = [name for name, _ in groupby(stages)]
    assert order[:7] == ["select", "navigate", "sample", "generate", "evaluate", "summarize", "update"]
    flows = len(said(facts, "context_evolve.selected"))
    assert len(asked(facts, NAVIGATE_TITLE)) <= flows / 4
    best = evolved.best()
    assert best is not None
    assert best.mean_score > 1.3


def test_in_both_forms_one_step_at_a_time_takes_the_same_decisions() -> None:
    options: dict[str, Any] = {"max_in_flight": 1, "budget": fe.Budget(evaluations=20)}
    assert contents(ran(**options)[1].pool) == contents(ran(mode="sync", **options)[1].pool)


# What goes stale


def test_a_step_whose_parent_was_surpassed_is_sent_back_for_new_guidance() -> None:
    _, report, facts = ran(
        algorithm(guidance_age=0),
        agents=Agents(seconds=20),
        staleness=Reflective(),
        max_in_flight=16,
        budget=fe.Budget(evaluations=120),
    )
    renewed = events_of(facts, "context_evolve.renewed")
    assert renewed
    assert report.staleness.repaired == len(renewed)
    for event in renewed:
        item = str(event.data["item"])
        turn = next(data for data in said(facts, NAVIGATED) if str(data["item"]).startswith(f"{item}."))
        assert turn["version"] is None or cast(int, turn["version"]) >= cast(int, event.data["version"])


def test_a_step_counts_as_stale_by_what_surpassed_its_parent() -> None:
    _, _, facts = ran(max_in_flight=8)
    gaps = [cast(int, event.data["gap"]) for event in events_of(facts, "item.taken")]
    commits = len(events_of(facts, "pool.commit"))
    assert 0 < max(gaps) < commits


# Going on


def contents(pool: Pool) -> list[object]:
    """All that is in the pool, and how it got there."""
    return [
        (each.id, each.artifact.id, each.parents, dict(each.scores), dict(each.attributes), pool.status(each.id))
        for _, each in pool.candidates()
    ]


def test_interrupted_anywhere_a_run_one_step_wide_ends_as_it_would_have() -> None:
    options: dict[str, Any] = {"max_in_flight": 1, "budget": fe.Budget(evaluations=9), "agents": Agents(0.2)}
    _, report, facts = ran(**options)
    for cut in cuts(facts, 5):
        _, other, _ = ran(before=facts[:cut], **options)
        assert contents(other.pool) == contents(report.pool), cut


@pytest.mark.parametrize("share", [0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
def test_interrupted_with_many_in_flight_nothing_is_asked_or_done_twice(share: float) -> None:
    _, _, facts = ran(max_in_flight=8)
    _, report, combined = ran(before=facts[: int(share * len(facts))], max_in_flight=8)
    assert report.error is None
    assert report.spent.evaluations >= 60
    flows = Counter(str(data["item"]) for data in said(combined, "context_evolve.selected"))
    assert set(flows.values()) == {1}
    versions = Counter(data["version"] for data in said(combined, GUIDED))
    assert set(versions.values()) == {1}
    assert len(asked(combined, NAVIGATE_TITLE)) <= len(versions) + 1  # one may have been cut off on the wire
    described = [each for each in programs(report.pool) if each.attributes["abstract"]]
    assert len(described) == len(programs(report.pool)) >= 60


def test_interrupted_where_a_step_has_taken_over_the_guidance_it_waited_for_the_run_goes_on() -> None:
    """Done again, the step finds in the log that it makes that guidance itself, and does not wait for it."""
    options: dict[str, Any] = {"max_in_flight": 4, "budget": fe.Budget(evaluations=12), "agents": Agents(refused=0.5)}
    _, _, facts = ran(**options)
    turns = events_of(facts, NAVIGATED)
    waited = {(event.data["item"], event.data["version"]) for event in turns if not event.data["makes"]}
    takes_over = next(
        event for event in turns if event.data["makes"] and (event.data["item"], event.data["version"]) in waited
    )
    _, report, _ = ran(before=facts[: facts.index(takes_over) + 1], **options)
    assert report.error is None
    assert report.spent.evaluations == 12


# Real programs


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_with_the_simulated_coder_real_programs_get_better(mode: str) -> None:
    result = evolve_nearest({"name": "context_evolve", "mode": mode, "max_in_flight": 6})
    assert result.report.error is None
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score * 0.6
    assert result.report.stages["summarize"].counts.tokens > 0
