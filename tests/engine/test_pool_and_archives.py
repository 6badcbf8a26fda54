"""The best score of a run: what counts as a gain, and since when there was none."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

import flowevolve as fe
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, Emit, Exhausted, Stage, Trigger
from flowevolve.core.item import Item, Ticket
from flowevolve.core.pool import Add, Candidate
from flowevolve.policies.stopping import NoImprovement
from tests.support.depth import cuts
from tests.support.interruption import events_of, evolve
from tests.support.small_runs import Small, consume, propose
from tests.support.triggers import Stagnation

RISING_TO_FOUR = (1.0, 2.0, 3.0, 4.0, 4.0, 3.0, 4.0, 4.0, 4.0, 4.0)


def scoring(*scores: float, triggers: tuple[Trigger, ...] = ()) -> Small:
    """Every ticket is a proposal, which gets the next of these scores a second later."""

    async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        ordinal = item.expect(Ticket).ordinal
        if ordinal >= len(scores):
            raise Exhausted
        context.spend(fe.Cost(proposals=1))
        yield Emit(propose(context, item.id).scored({"x": scores[ordinal]}), to="update")

    async def add(item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        context.commit([Add(item.expect(Candidate))])
        for emission in NO_EMISSIONS:
            yield emission

    return Small(enter, Stage("extra", consume), update=add, triggers=triggers)


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_proposals_without_a_gain_are_counted_from_the_last_gain_also_after_an_interruption(mode: str) -> None:
    options: dict[str, Any] = {"stopping": [NoImprovement(3)], "max_in_flight": 1, "mode": mode}
    report, facts = evolve(scoring(*RISING_TO_FOUR), **options)
    assert (report.stop_reason, report.spent.proposals) == ("no_improvement", 7)
    for end in cuts(facts):
        report, _ = evolve(scoring(*RISING_TO_FOUR), facts[:end], **options)
        assert (report.stop_reason, report.spent.proposals) == ("no_improvement", 7), f"after {facts[end - 1]}"


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_triggers_are_told_which_commits_made_the_best_score_rise_also_after_an_interruption(mode: str) -> None:
    def algorithm() -> Small:
        return scoring(*RISING_TO_FOUR, triggers=(Stagnation("stuck", "extra", 4),))

    options: dict[str, Any] = {"max_in_flight": 1, "mode": mode}
    _, facts = evolve(algorithm(), **options)
    (fired,) = events_of(facts, "trigger.fired")
    assert fired.data["version"] == 8
    for end in cuts(facts):
        if facts[end] is not fired:  # which is written to the journal in one step with the commit before it
            _, combined = evolve(algorithm(), facts[:end], **options)
            versions = [event.data["version"] for event in events_of(combined, "trigger.fired")]
            assert versions == [8], f"after {facts[end - 1]}"
