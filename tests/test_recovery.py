"""A run interrupted anywhere and gone on with: nothing lost, nothing done twice, everything accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from flowevolve.store.payloads import dump, load

from flowevolve import clock
from flowevolve.config import parse_config
from flowevolve.events import Event
from flowevolve.llm.client import CallRecord
from flowevolve.playback import PlayedCall, root_of
from flowevolve.result import Result
from flowevolve.run import Watchers, run
from flowevolve.tasks.house_style import house_style_task, make_rows

TASK = house_style_task(make_rows(rules=6, per_example=2, overlap=0.3, rows=30, seed=1))
Fact = Event | CallRecord


@dataclass
class Memory:
    """A journal in memory, ended where one likes."""

    facts: Sequence[Fact]

    @property
    def last(self) -> Event:
        return [fact for fact in self.facts if isinstance(fact, Event)][-1]

    def events(self) -> Iterator[Event]:
        return (fact for fact in self.facts if isinstance(fact, Event))

    def payload(self, item: str) -> object:
        for fact in reversed(self.facts):
            if isinstance(fact, Event) and fact.kind == "item.sent" and fact.data["item"] == item:
                assert isinstance(fact.attachment, bytes)
                return load(fact.attachment, {})
        raise KeyError(item)

    def calls(self, works: Collection[tuple[str, str]]) -> Iterable[PlayedCall]:
        for fact in self.facts:
            if isinstance(fact, CallRecord) and fact.reply is not None:
                scope = fact.scope
                if (scope.stage, root_of(scope.item)) in works:
                    yield PlayedCall(scope.stage, scope.item, scope.index, fact.request.messages, fact.reply)


def evolve(settings: Mapping[str, object], before: Sequence[Fact] = ()) -> tuple[Result, list[Fact]]:
    """Run, or go on; returns the result and all facts, those before included."""
    facts = list(before)
    config = parse_config({"clock": "virtual", **settings}, "test")

    def keep(event: Event) -> None:
        kept = None if event.attachment is None else dump(event.attachment, frozenset())
        facts.append(Event(event.seq, event.time, event.kind, event.data, kept))

    async def go() -> Result:
        watchers = Watchers(events=(keep,), calls=(facts.append,))
        return await run(config, task=TASK, watchers=watchers, history=Memory(tuple(before)) if before else None)

    return clock.run(go, clock="virtual"), facts


def check(facts: Sequence[Fact], result: Result) -> None:
    events = [fact for fact in facts if isinstance(fact, Event)]
    assert [event.seq for event in events] == list(range(len(events)))
    assert all(a.time <= b.time for a, b in zip(events, events[1:], strict=False))
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
    paid = Counter((call.scope.stage, call.scope.item, call.scope.index, call.request.messages) for call in calls)
    assert max(paid.values()) == 1
    assert result.report.spent.tokens == sum(call.reply.usage.total_tokens for call in calls if call.reply is not None)


SETTINGS: dict[str, Mapping[str, object]] = {
    "stream": {
        "algorithm": {"max_in_flight": 4, "merge": True},
        "staleness": {"policy": "reflective"},
        "speculation": {"alpha": {"generate": 0.34, "evaluate": 0.3}, "reorder": True},
        "racing": {"policy": "confidence"},
        "allocation": {"policy": "pressure", "interval_seconds": 5},
        "budget": {"proposals": 10},
    },
    "lockstep": {"algorithm": {"mode": "sync", "width": 3}, "budget": {"proposals": 6}},
}


@pytest.mark.parametrize("name", list(SETTINGS))
def test_a_run_interrupted_anywhere_ends_in_good_order(name: str) -> None:
    _, facts = evolve(SETTINGS[name])
    boundaries = [i for i in range(1, len(facts)) if is_step(facts, i)]
    for end in boundaries:
        result, combined = evolve(SETTINGS[name], facts[:end])
        try:
            check(combined, result)
        except AssertionError:
            print("interrupted after", end, facts[end - 1])
            raise


def is_step(facts: Sequence[Fact], end: int) -> bool:
    return True
