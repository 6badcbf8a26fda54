"""A run interrupted anywhere and gone on with: nothing lost, nothing done twice, everything accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from bench._lib.house_style import make_rows
from flowevolve._util import clock
from flowevolve.config.run import parse_config
from flowevolve.core.calls import CallRecord
from flowevolve.core.events import Event
from flowevolve.core.model import ChatRequest, Message
from flowevolve.runner.plan import ProvidedObjects, make_plan
from flowevolve.runner.result import Result
from flowevolve.runner.run import Watchers, run_plan
from flowevolve.tasks.house_style import house_style_task
from tests.support.depth import cuts, examples
from tests.support.interruption import Fact, Memory, as_kept, asked

TASK = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=15, seed=1))


def evolve(settings: Mapping[str, object], before: Sequence[Fact] = ()) -> tuple[Result, list[Fact]]:
    """Run, or go on; returns the result and all facts, those before included."""
    facts = list(before)
    config = parse_config({"clock": "virtual", **settings}, "test")

    async def go() -> Result:
        watchers = Watchers(events=(lambda event: facts.append(as_kept(event)),), calls=(facts.append,))
        plan = make_plan(config, ProvidedObjects(TASK))
        return await run_plan(plan, None, watchers, None, Memory(tuple(before)) if before else None)

    return clock.run(go, clock="virtual"), facts


def check(facts: Sequence[Fact], result: Result) -> None:
    events = [fact for fact in facts if isinstance(fact, Event)]
    assert [event.seq for event in events] == list(range(len(events)))
    assert all(a.time <= b.time for a, b in pairwise(events))
    data = {kind: [event.data for event in events if event.kind == kind] for kind in {event.kind for event in events}}
    begun = [str(each["item"]) for each in data["item.sent"]] + [str(each["flow"]) for each in data["flow.open"]]
    done = [str(each["item"]) for each in data["item.done"]]
    assert len(begun) == len(set(begun))
    assert sorted(begun) == sorted(done)
    assert sorted(str(each["flow"]) for each in data["flow.open"]) == sorted(str(e["flow"]) for e in data["flow.close"])
    assert [each["version"] for each in data["pool.commit"]] == list(range(1, len(data["pool.commit"]) + 1))
    proposed = [each["candidate"] for each in data["candidate.proposed"]]
    assert len(proposed) == len(set(proposed))
    pool = result.report.pool
    assert pool.version == len(data["pool.commit"])
    assert not [name for name in proposed if pool.status(str(name)) in ("proposed", "speculative")]
    calls = [fact for fact in facts if isinstance(fact, CallRecord)]
    paid = Counter((call.scope.stage, call.scope.item, call.scope.index, asked(call)) for call in calls)
    assert max(paid.values()) == 1
    assert result.report.spent.tokens == sum(call.reply.usage.total_tokens for call in calls if call.reply is not None)


SETTINGS: dict[str, Mapping[str, object]] = {
    "stream": {
        "algorithm": {"max_in_flight": 4, "merge": True},
        "staleness": {"policy": "reflective"},
        "speculation": {"alpha": {"generate": 0.34, "evaluate": 0.3}, "reorder": True},
        "racing": {"policy": "confidence"},
        "allocation": {"policy": "pressure", "interval_seconds": 5},
        "budget": {"proposals": 7},
    },
    "groups": {
        "algorithm": {"max_in_flight": 6, "group": True, "validation": "improvement", "prune": True},
        "racing": {"policy": "confidence"},
        "budget": {"proposals": 12},
    },
    "groups in lockstep": {
        "algorithm": {"mode": "sync", "width": 4, "group": True, "validation": "improvement"},
        "budget": {"proposals": 8},
    },
    "lockstep": {"algorithm": {"mode": "sync", "width": 3}, "budget": {"proposals": 6}},
}


@pytest.mark.parametrize("name", list(SETTINGS))
def test_a_run_interrupted_after_any_event_or_call_ends_in_good_order(name: str) -> None:
    _, facts = evolve(SETTINGS[name])
    for end in cuts(facts):
        result, combined = evolve(SETTINGS[name], facts[:end])
        check(combined, result)


@examples(10)
@given(cuts=st.lists(st.floats(0.02, 0.98), min_size=2, max_size=4), seed=st.integers(0, 1000))
def test_a_run_interrupted_again_and_again_ends_in_good_order(cuts: list[float], seed: int) -> None:
    options = {**SETTINGS["stream"], "seed": seed}
    result, facts = evolve(options)
    for cut in cuts:
        result, facts = evolve(options, facts[: max(1, int(cut * len(facts)))])
        check(facts, result)


def test_replies_that_had_come_in_are_used_again() -> None:
    _, facts = evolve(SETTINGS["stream"])
    for end in range(20, len(facts), 7):
        _, combined = evolve(SETTINGS["stream"], facts[:end])
        resumed = next(fact for fact in combined[end:] if isinstance(fact, Event) and fact.kind == "run.resumed")
        ended = {str(f.data["item"]) for f in facts[:end] if isinstance(f, Event) and f.kind == "item.done"}
        calls = [fact for fact in facts[:end] if isinstance(fact, CallRecord)]
        assert resumed.data["replies"] == sum(call.scope.work.item not in ended for call in calls)


def test_what_was_paid_for_is_charged_though_nobody_asks_for_it_again() -> None:
    """As when the pool has moved on, and the work that is done again goes another way."""
    _, facts = evolve(SETTINGS["stream"])
    for end in range(20, len(facts), 7):
        before = list(facts[:end])
        last = max((place for place, fact in enumerate(before) if isinstance(fact, CallRecord)), default=None)
        if last is not None:
            call = before[last]
            assert isinstance(call, CallRecord)
            assert isinstance(call.request, ChatRequest)
            other = replace(call.request, messages=(Message("user", "something else"),))
            before[last] = replace(call, request=other)
        result, combined = evolve(SETTINGS["stream"], before)
        check(combined, result)
