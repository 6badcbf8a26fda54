"""GEPA on the simulated server: both modes, its options, repair, and the decisions at width one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest

from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve._util.errors import InputError
from flowevolve.config.run import parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.model import ChatRequest
from flowevolve.core.task import Dataset
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run
from flowevolve.tasks.house_style import house_style_task
from flowevolve.tasks.instructions import InstructionFollowing
from tests.support.depth import LONG

TASK = house_style_task(make_rows(rules=10, per_example=3, overlap=0.3, rows=36, seed=1))


def evolve(
    mode: Literal["stream", "sync"] = "stream",
    *,
    width: int = 4,
    seed: int = 0,
    staleness: Mapping[str, object] | None = None,
    budget: Mapping[str, object] | None = None,
    algorithm: Mapping[str, object] | None = None,
    retries: int = 1,
) -> tuple[Result, list[Event], list[CallRecord]]:
    events: list[Event] = []
    calls: list[CallRecord] = []
    config = parse_config(
        {
            "preset": "plain",
            "seed": seed,
            "clock": "virtual",
            "algorithm": {"name": "gepa", "mode": mode, "max_in_flight": width, **(algorithm or {})},
            "staleness": staleness or {"policy": "full"},
            "budget": budget or {"proposals": 25},
            "llm": {"retries": retries},
            "stages": {name: {"workers": width} for name in ("generate", "propose", "screen", "evaluate")},
        },
        "test",
    )

    async def go() -> Result:
        return await run(config, task=TASK, watchers=Watchers(events=(events.append,), calls=(calls.append,)))

    return clock.run(go, clock="virtual"), events, calls


def of_kind(events: list[Event], *kinds: str) -> list[Mapping[str, object]]:
    return [{"kind": event.kind, **event.data} for event in events if event.kind in kinds]


@pytest.mark.parametrize("options", [{}, {"merge": True}, {"candidate_selection": "epsilon_greedy"}])
def test_at_width_one_both_modes_take_the_same_decisions(options: dict[str, object]) -> None:
    """Invariant 7, on everything GEPA decides and every text it got."""
    kinds = ("gepa.selected", "candidate.proposed", "candidate.screened", "pool.commit")
    stream, stream_events, stream_calls = evolve("stream", width=1, algorithm=options)
    sync, sync_events, sync_calls = evolve("sync", width=1, algorithm=options)
    assert of_kind(stream_events, *kinds) == of_kind(sync_events, *kinds)
    assert stream.best == sync.best
    texts = [
        sorted((call.scope.item, call.scope.index, str(call.reply)) for call in each)
        for each in (stream_calls, sync_calls)
    ]
    assert texts[0] == texts[1]


def test_the_stream_is_faster_and_improves() -> None:
    budget = {"minutes": 15 if LONG else 8}
    stream, _, _ = evolve("stream", width=8, budget=budget)
    sync, _, _ = evolve("sync", width=1, budget=budget)
    assert stream.report.spent.proposals > 2 * sync.report.spent.proposals
    assert stream.best is not None
    assert stream.seed_score is not None
    assert stream.best.score > stream.seed_score + 0.1


def test_a_child_is_screened_on_its_parents_minibatch_and_must_beat_it() -> None:
    _, events, _ = evolve()
    batches = {str(event["item"]).partition(".")[0]: event["batch"] for event in of_kind(events, "gepa.selected")}
    screened = of_kind(events, "candidate.screened")
    assert screened
    for event in screened:
        scores, baseline = event["scores"], event["baseline"]
        assert isinstance(scores, list)
        assert isinstance(baseline, list)
        assert len(scores) == len(batches[str(event["item"]).partition(".")[0]])  # type: ignore[arg-type]  # a list
        assert event["accepted"] == (sum(scores) > sum(baseline))
    accepted = {event["candidate"] for event in screened if event["accepted"]}
    for event in of_kind(events, "pool.commit")[1:]:
        changes = event["changes"]
        assert isinstance(changes, list)
        assert {change["add"] for change in changes} <= accepted


def test_improvement_or_equal_accepts_ties() -> None:
    _, events, _ = evolve(algorithm={"acceptance": "improvement_or_equal"})
    for event in of_kind(events, "candidate.screened"):
        assert event["accepted"] == (sum(event["scores"]) >= sum(event["baseline"]))  # type: ignore[call-overload]


def test_the_seed_is_validated_first_and_counts() -> None:
    result, events, _ = evolve(budget={"rollouts": 60})
    first = of_kind(events, "pool.commit")[0]
    assert first["best"] == "c0"
    assert result.report.spent.rollouts >= len(TASK.data.val)


def test_evaluations_are_counted_and_bound_a_run() -> None:
    result, events, _ = evolve(width=1, budget={"evaluations": 4})
    assert result.report.stop_reason == "evaluations"
    assert result.report.spent.evaluations == 4
    evaluated = [event for event in of_kind(events, "item.taken") if event["stage"] == "evaluate"]
    assert len(evaluated) == 4


def test_all_components_and_merge_run() -> None:
    result, events, _ = evolve(algorithm={"merge": True, "component_selector": "all"}, budget={"proposals": 60})
    assert result.report.error is None
    for event in of_kind(events, "gepa.selected"):
        assert len(event["parents"]) == (1 if event["ancestor"] is None else 2)  # type: ignore[arg-type]  # a list


@pytest.mark.parametrize("selection", ["pareto", "current_best", "epsilon_greedy", "top_k_pareto"])
def test_every_selection_runs(selection: str) -> None:
    result, _, _ = evolve(algorithm={"candidate_selection": selection}, budget={"proposals": 10})
    assert result.report.spent.proposals >= 10


def test_repair_logs_every_verdict_and_why() -> None:
    result, events, _ = evolve(
        width=12, seed=1, staleness={"policy": "reflective"}, budget={"proposals": 80}, retries=0
    )
    judged = of_kind(events, "repair.judged")
    assert judged
    for event in judged:
        assert event["verdict"] in ("orthogonal", "subsumed", "conflicting")
        assert event["reason"]
        assert (event["patch"] != {}) == (event["verdict"] == "orthogonal")
        assert isinstance(event["gap"], int)
        assert event["gap"] >= 1
    repaired = [event for event in of_kind(events, "candidate.proposed") if event["operator"] == "repair"]
    assert 0 < len(repaired) <= sum(event["verdict"] == "orthogonal" for event in judged)
    assert of_kind(events, "repair.unparsable")  # on which the item goes on as it was
    assert result.report.staleness.repaired == len(repaired)
    # a repaired candidate is screened before it is evaluated
    screened = {event["candidate"] for event in of_kind(events, "candidate.screened")}
    added = {c["add"] for event in of_kind(events, "pool.commit") for c in event["changes"]}  # type: ignore[attr-defined]
    assert {event["candidate"] for event in repaired} & added <= screened


def test_guarded_wastes_what_reflective_keeps() -> None:
    guarded, _, _ = evolve(width=12, staleness={"policy": "guarded", "max_gap": 1}, budget={"proposals": 60})
    reflective, _, _ = evolve(width=12, staleness={"policy": "reflective"}, budget={"proposals": 60})
    assert guarded.report.staleness.discarded > 0
    assert reflective.report.staleness.discarded == 0


def test_a_task_without_validation_examples_is_refused() -> None:
    task = InstructionFollowing(Dataset(TASK.data.train, ()))
    config = parse_config({"budget": {"proposals": 1}, "clock": "virtual"}, "test")

    async def go() -> Result:
        return await run(config, task=task)

    with pytest.raises(InputError, match="has no val examples"):
        clock.run(go, clock="virtual")


def test_gepas_own_prompt_can_be_sent() -> None:
    _, _, calls = evolve(budget={"rollouts": 120}, algorithm={"reflection_prompt": "gepa"})
    requests = [call.request for call in calls if call.role == "reflection"]
    assert requests
    for request in requests:
        assert isinstance(request, ChatRequest)
        assert request.messages[0].content.startswith("I provided an assistant with")


@pytest.mark.parametrize("seed", [1, 2])
def test_where_a_flow_may_make_several_proposals_a_budget_for_one_is_used(seed: int) -> None:
    """What the flow makes beyond the budget is refused."""
    settings = {"preset": "flashevolve", "seed": seed, "clock": "virtual", "llm": {"backend": "sim"}}
    config = parse_config({**settings, "budget": {"proposals": 1}}, "test")
    assert clock.run(lambda: run(config, task=TASK), clock="virtual").proposals == 1
