"""A run whose caller follows its events, and may stop or leave it early."""

from __future__ import annotations

from contextlib import aclosing

import anyio
import pytest

from flowevolve._util import clock
from flowevolve._util.errors import EngineError
from flowevolve.core.budget import Budget
from flowevolve.engine.engine import Engine
from flowevolve.engine.report import RunReport
from tests.support.toy_algorithm import BUG, Buggy, Plan, Toy, no_llm


@pytest.mark.parametrize("following", [True, False])
def test_a_bug_in_a_stage_ends_the_open_form(following: bool) -> None:
    async def go() -> None:
        async with Engine(Buggy([Plan()]), llm=no_llm(), budget=Budget(seconds=10)) as engine:
            async for _ in engine.events():
                if not following:
                    await anyio.sleep_forever()

    with pytest.raises(EngineError, match=BUG):
        clock.run(go, clock="virtual")


def test_the_open_form_yields_events_and_can_stop() -> None:
    async def go() -> tuple[list[str], RunReport]:
        engine = Engine(Toy([Plan()]), llm=no_llm(), budget=Budget(seconds=1e6), max_in_flight=2)
        kinds: list[str] = []
        async with engine:
            async for event in engine.events():
                kinds.append(event.kind)
                if event.kind == "pool.commit" and kinds.count("pool.commit") == 3:
                    engine.stop("enough")
        return kinds, engine.report

    kinds, report = clock.run(go, clock="virtual")
    assert kinds[0] == "run.start"
    assert kinds[-1] == "run.stop"
    assert report.stop_reason == "enough"


def test_a_caller_may_leave_the_events_early() -> None:
    async def go() -> RunReport:
        engine = Engine(Toy([Plan()], most=20), llm=no_llm(), budget=Budget(seconds=1e6), max_in_flight=2)
        async with engine, aclosing(engine.events()) as events:
            async for event in events:
                if event.kind == "pool.commit":
                    break
        return engine.report

    report = clock.run(go, clock="virtual")
    assert report.stop_reason == "exhausted"
    assert report.pool.version == 20


def test_a_caller_that_comes_after_the_end_has_nothing_to_pause() -> None:
    """One who reads events slowly may only learn of a commit when the run is over."""

    async def go() -> list[str]:
        engine = Engine(Toy([Plan()], most=20), llm=no_llm(), budget=Budget(seconds=1e6), max_in_flight=2)
        kinds: list[str] = []
        async with engine:
            async for event in engine.events():
                if event.kind == "pool.commit":
                    await anyio.sleep(10_000)
                    engine.pause()
                    engine.unpause()
                kinds.append(event.kind)
        return kinds

    kinds = clock.run(go, clock="virtual")
    assert kinds[-1] == "run.stop"
    assert "run.paused" not in kinds


def test_a_caller_that_falls_behind_is_told() -> None:
    async def go() -> None:
        engine = Engine(Toy([Plan()], most=20), llm=no_llm(), budget=Budget(seconds=1e6), max_in_flight=2)
        async with engine:
            async for _ in engine.events(buffer=3):
                await anyio.sleep(5)

    with pytest.raises(EngineError, match="behind"):
        clock.run(go, clock="virtual")
