"""Runs that are asked to stop, and stages that can't go on."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import pytest

from flowevolve._util.errors import EngineError
from flowevolve.core.context import StageContext
from flowevolve.core.graph import Emit
from flowevolve.core.item import Item
from flowevolve.engine.engine import Engine
from tests.support.interruption import events_of, evolve
from tests.support.small_runs import Carrier, Small, once, propose


async def enter(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
    candidate = propose(context)
    await anyio.sleep(10)
    yield Emit(Carrier(candidate))


def test_a_run_that_is_cut_off_while_it_ends_says_why_once() -> None:
    async def ask(engine: Engine) -> None:
        await anyio.sleep(1)
        engine.stop("enough")
        await anyio.sleep(1)
        for _ in range(2):
            engine.cancel("the machine is needed")

    report, facts = evolve(Small(enter), beside=ask, drain_seconds=60)
    assert [event.data["reason"] for event in events_of(facts, "run.stopping")] == ["enough", "the machine is needed"]
    assert (report.stop_reason, report.pool.version) == ("the machine is needed", 0)


def test_an_item_for_a_stage_that_is_not_there_ends_the_run() -> None:
    async def emit(item: Item[object], context: StageContext) -> AsyncGenerator[Emit]:
        yield Emit(Carrier(propose(context)), to="nowhere")

    with pytest.raises(
        EngineError,
        match="stage 'entry' of algorithm 'small', item 1: it emitted to 'nowhere', which is no stage of the graph; there are entry, update",
    ):
        evolve(Small(once(emit)))
