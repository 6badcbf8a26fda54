"""A run that is opened: what the block around it does, raises and asks for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine

import anyio
import pytest

import flowevolve as fe
from flowevolve._util import clock
from flowevolve.config.run import Config, parse_config
from flowevolve.core.events import Event
from flowevolve.engine.engine import Engine

WORDS = fe.Artifact({"system_prompt": "Answer in lower case."})


def config() -> Config:
    return parse_config({"clock": "virtual", "budget": {"proposals": 20}}, "test")


def opened(block: Callable[[Engine], Coroutine[None, None, None]]) -> Engine:
    """The engine of a run around ``block``, which is over."""

    async def go() -> Engine:
        async with fe.open_run(config()) as engine:
            await block(engine)
        return engine

    return clock.run(go, clock="virtual")


async def kinds_of(engine: Engine) -> list[str]:
    return [event.kind async for event in engine.events()]


# What comes out of it


async def raises_its_own(engine: Engine) -> None:
    async for event in engine.events():
        if event.kind == "pool.commit":
            raise KeyError("mine") from ValueError("the cause")


async def injects_what_does_not_fit(engine: Engine) -> None:
    async for event in engine.events():
        if event.kind == "pool.commit":
            await engine.inject(WORDS, parents=["c99"])


async def raises_several(engine: Engine) -> None:
    raise ExceptionGroup("mine", [KeyError("one"), ValueError("two")])


def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine") as caught:
        opened(raises_its_own)
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ExceptionGroup, match="mine"):
        opened(raises_several)


def test_a_refused_candidate_is_an_input_error() -> None:
    with pytest.raises(fe.InputError, match="has no such candidate"):
        opened(injects_what_does_not_fit)


# When it begins and ends


def test_a_block_that_follows_nothing_waits_for_the_run() -> None:
    async def nothing(engine: Engine) -> None: ...

    engine = opened(nothing)
    assert engine.report.stop_reason == "proposals"


def test_a_candidate_may_be_given_before_the_events_are_followed() -> None:
    """It waits until init is over, which needs nobody to look."""
    given: list[fe.Candidate] = []

    async def give_first(engine: Engine) -> None:
        given.append(await engine.inject(WORDS))
        await kinds_of(engine)

    engine = opened(give_first)
    assert engine.pool.status(given[0].id) is not None


def test_the_events_are_followed_from_where_one_is() -> None:
    async def leave_and_come_back(engine: Engine) -> None:
        async for event in engine.events():
            assert event.kind == "run.start"
            break
        again = await kinds_of(engine)
        assert again[-1] == "run.stop"
        assert "run.start" not in again
        assert await kinds_of(engine) == []

    assert opened(leave_and_come_back).report.stop_reason == "proposals"


def test_several_may_follow_at_once() -> None:
    seen: list[list[str]] = []

    async def follow_twice(engine: Engine) -> None:
        async def follow() -> None:
            seen.append(await kinds_of(engine))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            tasks.start_soon(follow)

    opened(follow_twice)
    assert seen[0] == seen[1]
    assert seen[0][-1] == "run.stop"


def test_events_belong_into_the_block() -> None:
    async def follow_later() -> AsyncGenerator[Event]:
        async with fe.open_run(config()) as engine:
            pass
        return engine.events()

    async def go() -> None:
        await anext(await follow_later())

    with pytest.raises(fe.FlowevolveError, match="inside 'async with engine:'"):
        clock.run(go, clock="virtual")
