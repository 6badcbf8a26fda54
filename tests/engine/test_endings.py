"""Candidates that come to nothing, in runs that are interrupted."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import pytest

from flowevolve.core.context import StageContext
from flowevolve.core.graph import NO_EMISSIONS, Discard, Emit, Stage
from flowevolve.core.item import Item
from flowevolve.stages.payloads import Evaluated
from tests.support.interruption import events_of, evolve
from tests.support.small_runs import Small, once, propose


async def hand_on_twice(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    candidate = propose(context)
    for number in (1, 2):
        yield Emit(Evaluated(candidate.scored({"x": number})))


@pytest.mark.parametrize("mode", ["stream", "sync"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_candidate_ends_for_the_first_reason_though_the_run_is_interrupted_before_its_last_item(
    mode: str, fails: bool
) -> None:
    async def judge(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        first = item.expect(Evaluated).candidate.scores["x"] == 1
        await anyio.sleep(1 if first else 5)
        if first or fails:
            raise Discard("timed out" if first else "no good")
        for emission in NO_EMISSIONS:
            yield emission

    def algorithm() -> Small:
        return Small(once(hand_on_twice), Stage("judge", judge, ("update",), workers=2))

    _, facts = evolve(algorithm(), mode=mode)
    (ending,) = events_of(facts, "candidate.ending")
    discarded = next(event for event in events_of(facts, "item.done") if event.seq > ending.seq)
    report, combined = evolve(algorithm(), facts[: facts.index(discarded) + 1], mode=mode)
    assert report.pool.status(str(ending.data["candidate"])) == "rejected"
    assert [event.data["reason"] for event in events_of(combined, "candidate.rejected")] == ["timed out"]
