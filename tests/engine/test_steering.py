"""A run that its caller pauses."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

import flowevolve as fe
from flowevolve._util.errors import EngineError
from flowevolve.core.events import Event
from flowevolve.core.policies import Resize, Workload
from flowevolve.engine.engine import Engine
from tests.support.growing import Growing
from tests.support.interruption import Fact, events_of, evolve


async def rest(engine: Engine, *, items: bool) -> None:
    await anyio.sleep(9.5)
    engine.pause(items=items)
    await anyio.sleep(30)
    engine.unpause()


def between(facts: Sequence[Fact], kind: str, start: str, end: str) -> list[Event]:
    (first,), (last,) = events_of(facts, start), events_of(facts, end)
    return [event for event in events_of(facts, kind) if first.seq < event.seq < last.seq]


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_paused_no_flow_is_opened_and_open_ones_go_on(mode: str) -> None:
    whole, _ = evolve(Growing(12), mode=mode)
    report, facts = evolve(Growing(12), mode=mode, beside=lambda engine: rest(engine, items=False))
    assert not between(facts, "flow.open", "run.paused", "run.unpaused")
    assert between(facts, "flow.close", "run.paused", "run.unpaused")
    assert report.pool.version == whole.pool.version == 13
    assert report.stop_reason == "exhausted"
    assert report.wall_seconds > 39.5


@pytest.mark.parametrize("mode", ["stream", "sync"])
def test_paused_with_items_nothing_that_waits_is_begun(mode: str) -> None:
    report, facts = evolve(Growing(12), mode=mode, beside=lambda engine: rest(engine, items=True))
    assert not between(facts, "item.taken", "run.paused", "run.unpaused")
    assert between(facts, "item.done", "run.paused", "run.unpaused")
    assert report.pool.version == 13
    assert report.held == 0


@pytest.mark.parametrize("mode", ["stream", "sync"])
@pytest.mark.parametrize("items", [False, True])
def test_a_stop_ends_a_pause(mode: str, items: bool) -> None:
    async def pause_and_stop(engine: Engine) -> None:
        await anyio.sleep(9.5)
        engine.pause(items=items)
        await anyio.sleep(30)
        engine.stop("enough")

    report, _ = evolve(Growing(12), mode=mode, beside=pause_and_stop, drain_seconds=30)
    assert report.stop_reason == "enough"
    assert report.held == 0


def test_a_pause_that_nobody_ends_is_named_where_nothing_else_is_waited_for() -> None:
    async def pause(engine: Engine) -> None:
        await anyio.sleep(9.5)
        engine.pause()

    with pytest.raises(EngineError, match="a pause that nobody ends"):
        evolve(Growing(12), beside=pause, budget=fe.Budget(proposals=100))


class Asked:
    """An allocation policy that notes when it is asked, in whole seconds."""

    interval_seconds = 1.0

    def __init__(self) -> None:
        self.at: list[int] = []

    def decide(self, load: Workload) -> Sequence[Resize]:
        self.at.append(round(load.now))
        return ()


def test_allocation_is_not_asked_while_the_backend_is_idle_on_purpose() -> None:
    asked = Asked()
    evolve(Growing(12), allocation=asked, beside=lambda engine: rest(engine, items=False))
    assert [second for second in asked.at if second < 45] == [5, 6, 7, 8, 9, 40, 41, 42, 43, 44]
