"""The worlds that a configuration can name (``[sim] world``), and their presets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flowevolve.sim.rules import RulesWorld
from flowevolve.sim.rules_params import RulesParams
from flowevolve.sim.world import World


def harness(params: RulesParams) -> World:
    from flowevolve.sim.harness import HarnessWorld  # noqa: PLC0415 - few runs need it

    return HarnessWorld(params)


def code(params: RulesParams) -> World:
    from flowevolve.sim.code import CodeWorld  # noqa: PLC0415 - few runs need it

    return CodeWorld(params)


WORLDS: Mapping[str, Callable[[RulesParams], World]] = {"rules": RulesWorld, "harness": harness, "code": code}
