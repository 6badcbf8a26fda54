"""What an algorithm holds for the time of a run, it has from being entered."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Self

import pytest
from structlog.testing import capture_logs

from flowevolve._util import clock
from flowevolve._util.errors import EngineError, InputError, TaskFailedError
from flowevolve._util.registry import Registry
from flowevolve.algorithms.gepa import GEPA
from flowevolve.config.run import Config, parse_config
from flowevolve.core.context import StageContext, UpdateContext
from flowevolve.core.graph import Emit
from flowevolve.runner import assemble as build
from flowevolve.runner.check import check
from flowevolve.runner.in_use import closing
from flowevolve.runner.run import open_run, run


class Holding(GEPA):
    """Tells what happens to it, in order."""

    name = "holding"
    told: tuple[str, ...] = ()
    broken: Exception | None = None
    left_broken: Exception | None = None
    fails_with: Exception | None = None
    left_with: object = None
    """With which error it was left."""

    async def __aenter__(self) -> Self:
        if Holding.broken is not None:
            raise Holding.broken
        Holding.told += ("entered",)
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        Holding.told += ("left",)
        Holding.left_with = error
        if Holding.left_broken is not None:
            raise Holding.left_broken

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
    monkeypatch.setattr(Holding, "broken", None)
    monkeypatch.setattr(Holding, "left_broken", None)
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
    monkeypatch.setattr(Holding, "broken", InputError("holding: nothing to hold; give it something"))
    with pytest.raises(InputError, match="nothing to hold"):
        clock.run(check, config)


def test_one_that_can_not_be_entered_is_named_in_a_line(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Holding, "broken", ConnectionRefusedError("no Docker here"))
    said = r"^algorithm 'holding' can't be used: its __aenter__ raised ConnectionRefusedError: no Docker here \(test_"
    with pytest.raises(InputError, match=said):
        clock.run(run, config, clock="virtual")
    with pytest.raises(InputError, match=said):
        clock.run(check, config)


def test_one_that_can_not_be_left_never_hides_why_the_run_has_failed(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Holding, "left_broken", RuntimeError("still busy"))
    with pytest.raises(
        EngineError, match=r"^algorithm 'holding' could not be closed: RuntimeError: still busy \(test_"
    ):
        clock.run(run, config, clock="virtual")
    monkeypatch.setattr(Holding, "fails_with", TaskFailedError("the first examples all failed"))
    with pytest.raises(TaskFailedError, match="the first examples all failed"), capture_logs() as logs:
        clock.run(run, config, clock="virtual")
    (said,) = [record for record in logs if record["event"] == "plugin.not_closed"]
    assert (said["plugin"], "still busy" in said["why"]) == ("algorithm 'holding'", True)


def test_neither_does_a_backend() -> None:
    async def close() -> None:
        raise RuntimeError("still busy")

    async def go(failure: Exception | None) -> None:
        async with closing("backend 'mine'", close):
            if failure is not None:
                raise failure

    with pytest.raises(EngineError, match=r"^backend 'mine' could not be closed: RuntimeError: still busy"):
        clock.run(go, None, clock="virtual")
    with pytest.raises(TaskFailedError, match="no rows"), capture_logs() as logs:
        clock.run(go, TaskFailedError("no rows"), clock="virtual")
    assert [record["plugin"] for record in logs] == ["backend 'mine'"]
