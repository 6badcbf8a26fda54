"""State of an algorithm's own, which no log can tell: kept after commits, given back to a run that goes on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from itertools import pairwise

import pytest

import flowevolve as fe
from flowevolve._util.errors import EngineError
from flowevolve._util.json_types import JSON
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Item, Ticket
from flowevolve.core.pool import Candidate, Note
from tests.support.depth import cuts
from tests.support.interruption import events_of, evolve


class Remembering(fe.Algorithm):
    """Remembers what it has seen in every second commit."""

    name = "remembering"
    archives = ()

    def __init__(self) -> None:
        self.memory: dict[str, JSON] = {}
        self.given_back: Mapping[str, JSON] | None = None

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        return Graph((Stage("start", self._start, ("update",)), CommittingStage("update", self._update)), "start")

    def state(self) -> Mapping[str, JSON] | None:
        return self.memory

    def restore(self, state: Mapping[str, JSON]) -> None:
        self.given_back = state
        self.memory = dict(state)

    async def _start(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        if (ordinal := item.expect(Ticket).ordinal) >= 6:
            raise Exhausted
        yield Emit(ordinal)

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        seen = item.expect(int)
        if seen % 2:
            self.memory[f"seen {seen}"] = [seen]
        context.commit([Note("seen", {})])
        for emission in NO_EMISSIONS:
            yield emission


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_it_is_written_where_it_has_changed_and_given_back_as_it_was_last(mode: str) -> None:
    _, facts = evolve(Remembering(), mode=mode)
    kept = [event.data["state"] for event in events_of(facts, "algorithm.state")]
    assert kept == [{}, {"seen 1": [1]}, {"seen 1": [1], "seen 3": [3]}, {"seen 1": [1], "seen 3": [3], "seen 5": [5]}]
    for end in cuts(facts):
        algorithm = Remembering()
        _, combined = evolve(algorithm, facts[:end], mode=mode)
        before = events_of(facts[:end], "algorithm.state")
        assert algorithm.given_back == (before[-1].data["state"] if before else None)
        assert set(algorithm.memory) >= set(before[-1].data["state"] if before else ())  # type: ignore[arg-type]
        states = [event.data["state"] for event in events_of(combined, "algorithm.state")]
        assert all(a != b for a, b in pairwise(states))


def test_what_is_no_plain_data_is_a_mistake_of_the_algorithm() -> None:
    class Wrong(Remembering):
        def state(self) -> Mapping[str, JSON] | None:
            return {"set": {1, 2}}  # type: ignore[dict-item]  # the mistake

    with pytest.raises(EngineError, match=r"'remembering': what state\(\) returns is no plain data"):
        evolve(Wrong())
