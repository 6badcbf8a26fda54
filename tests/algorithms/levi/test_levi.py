"""LEVI over prompts on the simulated server: what it does when, in both modes, whatever is in flight or interrupted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from bench._lib.house_style import make_rows
from flowevolve._util.errors import InputError
from flowevolve._util.json_types import JSON
from flowevolve.algorithms.levi import LEVI, LEVIConfig
from flowevolve.algorithms.levi.evaluate import bar
from flowevolve.algorithms.levi.map_elites import Described, MapElites
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.pool import Add, Annotate, Candidate, Note
from flowevolve.core.task import Dataset
from flowevolve.prompts.instructions import REWRITING_TITLES
from flowevolve.prompts.programs import EARLIER_HEADING
from flowevolve.prompts.reading.fences import fence
from flowevolve.runner.result import Result
from flowevolve.tasks.house_style import house_style_task
from flowevolve.tasks.instructions import InstructionFollowing
from tests.support.cells import cells_of
from tests.support.depth import cuts
from tests.support.interruption import Fact, asked, events_of
from tests.support.whole_runs import go_on, notes

TASK = house_style_task(make_rows(rules=8, per_example=3, overlap=0.3, rows=40, seed=1))
SMALL = house_style_task(make_rows(rules=5, per_example=2, overlap=0.3, rows=10, seed=1))
LITTLE: Mapping[str, object] = {"seeds": 2, "variants": 3, "shift_every": 6, "advice_every": 9, "minibatch": 1}


def evolve(
    algorithm: Mapping[str, object] | None = None,
    *,
    task: InstructionFollowing = TASK,
    before: Sequence[Fact] = (),
    **sections: object,
) -> tuple[Result, list[Fact]]:
    """Run, or go on; returns the result and all facts, those before included."""
    return go_on(
        {"algorithm": {"name": "levi", **(algorithm or {})}, "budget": {"evaluations": 60}, **sections}, task, before
    )


def evaluated(result: Result) -> list[Candidate]:
    updates = result.report.pool.updates_between(0)
    return [each.candidate for update in updates for each in update.changes if isinstance(each, Add)]


def archive_of(result: Result) -> MapElites:
    archive = MapElites()
    for update in result.report.pool.updates_between(0):
        archive.apply(update)
    return archive


def fired_at(facts: Sequence[Fact], name: str) -> list[int]:
    """After how many evaluations a trigger fired."""
    found = []
    evaluations = 0
    for fact in facts:
        if isinstance(fact, Event) and fact.kind == "pool.commit":
            evaluations += len([each for each in cast("list[dict[str, JSON]]", fact.data["changes"]) if "add" in each])
        elif isinstance(fact, Event) and fact.kind == "trigger.fired" and fact.data["trigger"] == name:
            found.append(evaluations)
    return found


def test_the_answers_that_are_shown_have_their_scores() -> None:
    _, facts = evolve(LITTLE, budget={"evaluations": 12})
    calls = [fact for fact in facts if isinstance(fact, CallRecord) and fact.role in ("small", "large")]
    titles = tuple(REWRITING_TITLES.values())
    prompts = [text for call in calls if (text := asked(call)[0].content).startswith(titles)]
    assert prompts
    assert all(re.search(r"^Score: [\d.]+\nFeedback:$", prompt, re.MULTILINE) for prompt in prompts)


def test_a_run_makes_prompts_better() -> None:
    result, _ = evolve(LITTLE, budget={"evaluations": 80})
    assert result.report.error is None
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score + 0.1
    archive = archive_of(result)
    cells = cells_of(archive.elites, archive.space)
    assert len(set(cells)) == len(cells)


def test_seeds_come_one_after_the_other_and_variants_from_each() -> None:
    result, _ = evolve({"seeds": 3, "variants": 4}, budget={"evaluations": 40})
    first = evaluated(result)[0]
    assert first.operator == "seed"
    seeds = [each for each in evaluated(result) if each.operator == "diverse"]
    assert len(seeds) == 3
    assert [each.parents for each in seeds] == [()] * 3
    variants = Counter(each.parents for each in evaluated(result) if each.operator == "variant")
    assert {(each.id,) for each in seeds} <= set(variants)
    assert all(variants[(each.id,)] <= 4 for each in seeds)


def test_the_opening_keeps_to_its_share_of_the_budget() -> None:
    result, facts = evolve({}, budget={"evaluations": 50})
    (plan,) = notes(result, "levi.plan")
    assert plan == {"seeds": 4, "tries": 3, "variants": 5}
    (fitted,) = [
        event for event in events_of(facts, "pool.commit") if "map_elites.fitted" in str(event.data["changes"])
    ]
    before = [each for each in events_of(facts, "pool.commit") if each.time < fitted.time]
    assert len([event for event in before if "'add'" in str(event.data["changes"])]) <= 25
    assert notes(evolve({}, budget={"evaluations": 4})[0], "levi.plan")[0]["seeds"] == 1


def test_small_models_mutate_and_large_ones_shift() -> None:
    _, facts = evolve(LITTLE)
    roles: dict[str, set[str]] = {}
    for call in (fact for fact in facts if isinstance(fact, CallRecord)):
        if call.scope.stage == "write" and call.role != "task":
            sent = next(
                each for each in events_of(facts, "item.sent") if each.data["item"] == call.scope.item.split("/")[0]
            )
            roles.setdefault(call.role, set()).add(str(sent.data["source"]))
    assert roles["small"] == {"select", "update"}
    assert roles["large"] == {"shift", "update"}


def test_shifts_and_advice_come_at_these_evaluations_and_shifts_have_variants() -> None:
    settings = {**LITTLE, "shift_stagnation": 0, "max_in_flight": 1, "shift_variants": 2}
    result, facts = evolve(settings, budget={"evaluations": 60})
    shifted, advised = fired_at(facts, "shift"), fired_at(facts, "advice")
    assert shifted == list(range(shifted[0], shifted[-1] + 1, 6))
    assert shifted[0] % 6 == advised[0] % 9 == 0
    assert advised == list(range(advised[0], advised[-1] + 1, 9))
    assert min(len(shifted), len(advised)) >= 4
    assert notes(result, "levi.advice")
    shifts = [each for each in evaluated(result) if each.operator == "shift"]
    assert len(shifts) >= 2
    parents = Counter(each.parents[0] for each in evaluated(result) if each.operator == "variant")
    assert all(parents[each.id] <= 2 for each in shifts)
    assert all(1 <= len(each.parents) <= 3 for each in shifts)


def test_a_shift_is_shown_the_shifts_before_it_whatever_became_of_them() -> None:
    result, facts = evolve({**LITTLE, "shift_every": 3, "shift_stagnation": 0, "max_in_flight": 1})
    shifts = [each for each in evaluated(result) if each.operator == "shift"]
    title = REWRITING_TITLES["shift"]
    calls = [fact for fact in facts if isinstance(fact, CallRecord) and fact.scope.stage == "write"]
    prompts = [asked(call)[0].content for call in calls if asked(call)[0].content.startswith(title)]
    later = [prompt.partition(EARLIER_HEADING)[2] for prompt in prompts if EARLIER_HEADING in prompt]
    assert len(later) >= 3
    assert any(fence(text) in later[-1] for each in shifts for text in each.artifact.values())
    assert len(set(later)) > 1


def test_shifts_that_win_a_cell_have_variants_and_others_none() -> None:
    settings = {"seeds": 0, "variants": 0, "shift_every": 3, "shift_stagnation": 0, "advice_every": 0, "minibatch": 1}
    result, _ = evolve(
        {**settings, "max_in_flight": 1, "shift_variants": 2}, budget={"evaluations": 30}, llm={"retries": 0}, seed=3
    )
    *shifts, _ = [each for each in evaluated(result) if each.operator == "shift"]  # the last may be cut off
    variants = Counter(each.parents[0] for each in evaluated(result) if each.operator == "variant")
    won = {each.id for each in shifts if result.report.pool.status(each.id) == "confirmed"}
    assert 0 < len(won) < len(shifts)
    assert {each.id for each in shifts if variants[each.id]} <= won  # replies that can't be read leave some without
    assert max(variants[name] for name in won) == 2


def test_temperatures_take_turns_and_advice_is_kept_to_its_tokens() -> None:
    _, facts = evolve(LITTLE)
    temperatures = [event.data["temperature"] for event in events_of(facts, "levi.selected")]
    assert temperatures[:5] == [0.3, 0.7, 1.0, 1.2, 0.3]
    shown = [cast("list[str]", event.data["shown"]) for event in events_of(facts, "levi.selected")]
    assert all(len(set(each)) == len(each) for each in shown)
    assert {len(each) for each in shown} == {1, 2}, "a parent alone, or with another to learn from"
    advice = [fact for fact in facts if isinstance(fact, CallRecord) and fact.scope.stage == "advise"]
    assert advice
    assert {call.request.max_tokens for call in advice} == {400}  # type: ignore[union-attr]


def test_a_proxy_benchmark_is_chosen_and_left_at_the_end() -> None:
    result, facts = evolve({**LITTLE, "seeds": 4, "proxy": 5}, budget={"rollouts": 900})
    (proxy,) = notes(result, "levi.proxy")
    examples = cast("list[str]", proxy["examples"])
    assert len(examples) == 5
    changes = [each for update in result.report.pool.updates_between(0) for each in update.changes]
    place = next(place for place, each in enumerate(changes) if isinstance(each, Note) and each.kind == "levi.proxy")
    before = [each.candidate for each in changes[:place] if isinstance(each, Add)]
    after = [each.candidate for each in changes[place:] if isinstance(each, Add)]
    every = [example.id for example in TASK.data.val]
    assert all(list(each.scores) == every for each in before)
    assert after
    assert all(list(each.scores) == examples for each in after)
    for each in before:
        rebased = next(
            change
            for change in changes[place:]
            if isinstance(change, Annotate) and change.candidate_id == each.id and change.scores is not None
        )
        assert rebased.scores == {name: each.scores[name] for name in examples}
    full = [each for each in changes if isinstance(each, Annotate) and "levi.full" in each.attributes]
    assert 1 <= len(full) <= 5
    assert all(list(cast("dict[str, float]", each.attributes["levi.full"])) == every for each in full)
    assert result.best is not None
    assert result.best.id in [each.candidate_id for each in full]
    assert not events_of(facts, "levi.no_proxy")


def test_after_the_fit_descriptors_are_those_of_the_proxy() -> None:
    result, _ = evolve({**LITTLE, "proxy": 3}, budget={"evaluations": 30})
    archive = archive_of(result)
    assert archive.space is not None
    assert {len(Described.of(each).descriptor) for each in archive.candidates} == {4}
    assert len(archive.space.scales) == 4  # length, and three scores


@pytest.mark.parametrize("placement", ["data", "uniform"])
def test_cells_are_around_the_first_candidates_or_everywhere(placement: str) -> None:
    result, _ = evolve({**LITTLE, "centroids": placement, "cells": 12}, budget={"evaluations": 30})
    archive = archive_of(result)
    assert archive.space is not None
    assert len(archive.space.centroids) <= 12
    assert (len(archive.space.centroids) == 12) == (placement == "uniform")


def test_without_seeds_there_is_the_tasks_own() -> None:
    result, _ = evolve({"seeds": 0, "cells": 9}, budget={"evaluations": 20})
    assert {each.operator for each in evaluated(result)} <= {"seed", "mutate", "shift", "variant"}
    assert len(evaluated(result)) >= 20


def test_at_width_one_both_modes_take_the_same_decisions() -> None:
    kinds = ("levi.selected", "levi.shifted", "levi.judged", "candidate.proposed", "pool.commit")
    runs = []
    for mode in ("stream", "sync"):
        options = {**LITTLE, "mode": mode, "max_in_flight": 1, "seeds": 1, "variants": 1, "shift_variants": 1}
        _, facts = evolve(options, task=SMALL, budget={"evaluations": 25})
        runs.append([(fact.kind, fact.data) for fact in facts if isinstance(fact, Event) and fact.kind in kinds])
    assert runs[0] == runs[1]


def test_equal_seeds_give_equal_runs() -> None:
    first, second = (evolve(LITTLE, task=SMALL, budget={"evaluations": 30})[1] for _ in range(2))
    assert first == second


INTERRUPTED: Mapping[str, Mapping[str, object]] = {
    "stream": {"max_in_flight": 4, "proxy": 2},
    "sync": {"mode": "sync", "width": 2},
}


@pytest.mark.parametrize("name", list(INTERRUPTED))
def test_a_run_interrupted_after_any_event_or_call_ends_in_good_order(name: str) -> None:
    options = {**LITTLE, **INTERRUPTED[name], "variants": 2, "cells": 5}
    _, facts = evolve(options, task=SMALL, budget={"evaluations": 14})
    for end in cuts(facts, 7):
        result, combined = evolve(options, task=SMALL, before=facts[:end], budget={"evaluations": 14})
        assert result.report.error is None
        commits = [event.data["version"] for event in events_of(combined, "pool.commit")]
        assert commits == list(range(1, len(commits) + 1))
        assert len(notes(result, "levi.plan")) == len(notes(result, "map_elites.fitted")) == 1
        seeds = [each for each in evaluated(result) if each.operator == "diverse"]
        assert len(seeds) == 2 or (len(seeds) < 2 and notes(result, "levi.unwritten"))
        assert len(notes(result, "levi.proxy")) == (name == "stream")
        again = archive_of(result)
        assert result.best is not None
        assert result.best.id in [each.id for each in again.candidates]


def test_a_cascade_saves_rollouts() -> None:
    settings = {**LITTLE, "cascade_examples": 4, "cascade_fraction": 1.0}
    result, _ = evolve(settings, budget={"evaluations": 60})
    stopped = [each for each in evaluated(result) if str(each.attributes["failure"]).startswith("cascade")]
    assert stopped
    assert not [each for each in stopped if each.operator in ("seed", "diverse")]
    whole, _ = evolve(LITTLE, budget={"evaluations": 60})
    assert result.report.spent.rollouts < whole.report.spent.rollouts


def test_a_share_of_a_loss_is_a_larger_loss() -> None:
    assert bar(10, 0.8) == pytest.approx(8)
    assert bar(-10, 0.8) == pytest.approx(-12)
    assert bar(0, 0.8) == 0
    assert bar(-10, 1.0) == -10


def test_what_does_not_suit_it_is_refused() -> None:
    with pytest.raises(InputError, match="score on"):
        LEVI(InstructionFollowing(Dataset((), ())))
    with pytest.raises(InputError, match="training examples"):
        LEVI(InstructionFollowing(Dataset((), TASK.data.val)))
    with pytest.raises(InputError, match="no feature loop_count; there are length, lines"):
        LEVI(TASK, LEVIConfig(features=("loop_count",)))
    with pytest.raises(InputError, match="both empty"):
        LEVI(TASK, LEVIConfig(features=(), outputs=()))
    with pytest.raises(InputError, match="no candidate has a metric seconds"):
        evolve({**LITTLE, "outputs": ["seconds"]})
    with pytest.raises(InputError, match="temperatures"):
        evolve({"temperatures": [0.0]})
    with pytest.raises(InputError, match="speculate"):
        evolve(speculation={"alpha": {"evaluate": 0.5}})
