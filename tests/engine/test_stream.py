"""How the stream follows a policy that says how many workers its stages have, on the virtual clock."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass

import anyio

from flowevolve.core.context import StageContext
from flowevolve.core.graph import Emit, Exhausted, Stage
from flowevolve.core.item import Item
from flowevolve.core.policies import Place, Resize, Workload
from tests.support.interruption import Fact, events_of, evolve
from tests.support.small_runs import Small, consume


@dataclass
class MoreWriters:
    """An allocation policy that wants one more worker at every look."""

    interval_seconds: float = 5.0
    places: Mapping[str, Place] | None = None

    def decide(self, load: Workload) -> Sequence[Resize]:
        self.places = {stage.name: stage.place for stage in load.stages}
        return [Resize("write", 1, "more is better")]


async def twelve(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    if item.flow > 12:
        raise Exhausted
    yield Emit("plan", to="write")


async def write(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    await anyio.sleep(10)
    yield Emit("text", to="screen")


def ran(policy: MoreWriters) -> list[Fact]:
    stages = (
        Stage("write", write, ("screen",), bounds=(1, 3)),
        Stage("screen", consume, ("update",), bounds=(1, 3)),
        Stage("repair", consume, ("screen",), bounds=(1, 3)),
    )
    return evolve(Small(twelve, *stages, repair="repair"), allocation=policy)[1]


def test_a_stage_gets_no_more_workers_than_its_bounds_allow_and_none_are_told_of() -> None:
    changes = [event.data for event in events_of(ran(MoreWriters()), "allocation.changed")]
    assert [(change["stage"], change["by"], change["workers"]) for change in changes] == [
        ("write", 1, 2),
        ("write", 1, 3),
    ]


def test_a_policy_is_told_which_stage_comes_first_and_which_repairs() -> None:
    policy = MoreWriters()
    ran(policy)
    assert policy.places == {"write": "first", "screen": "later", "repair": "repair"}
