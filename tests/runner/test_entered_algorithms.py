"""What an algorithm holds for the time of a run, it has from being entered."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Self

import pytest

from flowevolve._util import clock
from flowevolve._util.errors import InputError, TaskFailedError
from flowevolve._util.registry import Registry
from flowevolve.algorithms.gepa import GEPA
from flowevolve.config.run import Config, parse_config
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import Emit
from flowevolve.runner import assemble as build
from flowevolve.runner.check import check
from flowevolve.runner.run import open_run, run


class Holding(GEPA):
    """Tells what happens to it, in order."""

    name = "holding"
    told: tuple[str, ...] = ()
    broken = False
    fails_with: Exception | None = None
    left_with: object = None
    """With which error it was left."""

    async def __aenter__(self) -> Self:
        if Holding.broken:
            raise InputError("holding: nothing to hold; give it something")
        Holding.told += ("entered",)
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        Holding.told += ("left",)
        Holding.left_with = error

    async def init(self, context: UpdateContext) -> AsyncGenerator[Emit]:
        Holding.told += ("begun",)
        if Holding.fails_with is not None:
            raise Holding.fails_with
        async for emission in super().init(context):
            yield emission

    async def finish(self, context: StageContext) -> AsyncGenerator[Emit]:
        Holding.told += ("finished",)
        async for emission in super().finish(context):
            yield emission


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setattr(build, "ALGORITHMS", Registry("algorithm", "nowhere", {"holding": Holding}))
    monkeypatch.setattr(Holding, "told", ())
    monkeypatch.setattr(Holding, "broken", False)
    monkeypatch.setattr(Holding, "left_with", None)
    return parse_config({"clock": "virtual", "algorithm": {"name": "holding"}, "budget": {"proposals": 1}}, "test")


def test_a_run_enters_its_algorithm_and_leaves_it_at_the_end(config: Config) -> None:
    clock.run(run, config, clock="virtual")
    assert Holding.told == ("entered", "begun", "finished", "left")


def test_a_run_that_fails_leaves_its_algorithm_with_the_error(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = TaskFailedError("the first examples all failed")
    monkeypatch.setattr(Holding, "fails_with", failed)
    with pytest.raises(TaskFailedError):
        clock.run(run, config, clock="virtual")
    assert Holding.left_with is failed


def test_so_does_a_run_in_a_loop_of_ones_own(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        async with open_run(config):
            pass

    failed = TaskFailedError("the first examples all failed")
    monkeypatch.setattr(Holding, "fails_with", failed)
    with pytest.raises(TaskFailedError):
        clock.run(go, clock="virtual")
    assert Holding.left_with is failed


def test_checking_a_configuration_enters_it_too(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.run(check, config)
    assert Holding.told == ("entered", "left")
    monkeypatch.setattr(Holding, "broken", True)
    with pytest.raises(InputError, match="nothing to hold"):
        clock.run(check, config)
