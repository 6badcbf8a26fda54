"""How stale an item is, as its algorithm sees it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

import flowevolve as fe
from flowevolve._util.errors import EngineError, InputError
from flowevolve.config.run import parse_config
from flowevolve.core.context import PoolReader, StageContext, UpdateContext
from flowevolve.core.graph import NO_EMISSIONS, CommittingStage, Emit, Exhausted, Graph, Stage
from flowevolve.core.item import Item, Ticket
from flowevolve.core.policies import Decision, Staleness
from flowevolve.core.pool import Candidate, Note
from flowevolve.policies.staleness import Full, Guarded, Reflective
from flowevolve.runner.assemble import make_staleness
from tests.support.interruption import events_of, evolve


class Islands(fe.Algorithm):
    """The first ticket is slow and of the quiet island; all others are fast and of the busy one."""

    name = "islands"
    staleness = "tests.engine.test_version_gaps:Guarded"
    pools = ("quiet", "busy")
    archives = ()

    def __init__(self) -> None:
        """It needs no task."""

    def best(self) -> Candidate | None:
        return None

    def graph(self) -> Graph:
        return Graph(
            (
                Stage("select", self._select, ("work",)),
                Stage("work", self._work, ("update",), workers=2),
                CommittingStage("update", self._update),
            ),
            entry="select",
        )

    async def _select(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        ordinal = item.expect(Ticket).ordinal
        if ordinal == 8:
            raise Exhausted
        yield Emit("busy" if ordinal else "quiet", version=context.pool.version)

    async def _work(self, item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        await anyio.sleep(1 if item.expect(str) == "busy" else 20)
        yield Emit(item.payload)

    async def _update(self, item: Item[object], context: UpdateContext) -> AsyncGenerator[Emit]:
        context.commit([Note("seen", {}, pool=item.expect(str))])
        for emission in NO_EMISSIONS:
            yield emission


class OwnGap(Islands):
    """Counts what happened on the item's island."""

    def gap(self, item: Item[object], pool: PoolReader) -> int:
        island = item.expect(str)
        return sum(
            island in {change.pool for change in update.changes} for update in pool.updates_between(item.version)
        )


def discarded(algorithm: fe.Algorithm) -> int:
    report, facts = evolve(algorithm, staleness=Guarded(max_gap=2))
    assert sum(event.data["judged"] == "discard" for event in events_of(facts, "item.taken")) == (
        report.staleness.discarded
    )
    return report.staleness.discarded


def test_an_item_may_be_stale_only_by_what_matters_to_it() -> None:
    assert discarded(Islands()) == 1
    assert discarded(OwnGap()) == 0


@pytest.mark.parametrize(
    ("section", "policy"),
    [
        ({}, Guarded()),
        ({"max_gap": 7}, Guarded(max_gap=7)),
        ({"policy": "full"}, Full()),
        ({"policy": "reflective", "min_gap": 2}, Reflective(min_gap=2)),
    ],
)
def test_without_another_a_run_goes_by_the_policy_its_algorithm_names(
    section: dict[str, object], policy: object
) -> None:
    table = {
        "algorithm": {"name": "tests.engine.test_version_gaps:Islands"},
        "staleness": section,
        "budget": {"proposals": 1},
    }
    assert make_staleness(parse_config(table, "test"), Islands.staleness) == policy


def test_a_wrong_setting_of_the_policy_an_algorithm_names_is_refused() -> None:
    with pytest.raises(InputError, match=r"staleness\.gap: .* did you mean 'max_gap'"):
        make_staleness(parse_config({"staleness": {"gap": 7}, "budget": {"proposals": 1}}, "test"), "guarded")


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"max_gap": -1}, r"staleness\.max_gap is -1, but has to be at least 0"),
        ({"policy": "reflective", "min_gap": 0}, r"staleness\.min_gap is 0, but has to be at least 1"),
        ({"policy": "reflective", "max_repairs": -2}, r"staleness\.max_repairs is -2, but has to be at least 0"),
    ],
)
def test_a_setting_out_of_bounds_is_refused(section: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make_staleness(parse_config({"staleness": section, "budget": {"proposals": 1}}, "test"), "guarded")


class Decides:
    """Decides the same about every item."""

    def __init__(self, decision: Any) -> None:
        self._decision = decision

    def decide(self, facts: Staleness) -> Decision:
        decision: Decision = self._decision
        return decision


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ("drop", r"staleness policy Decides decided 'drop' on an item at stage '.*'; it may decide 'continue', 'disc"),
        (None, r"staleness policy Decides decided None on an item"),
        ("repair", r"staleness policy Decides wants to repair an item at stage '.*', where that is not possible"),
    ],
)
def test_a_policy_that_decides_what_it_may_not_ends_the_run(decision: object, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        evolve(Islands(), staleness=Decides(decision))
