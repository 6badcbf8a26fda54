"""The worlds that a configuration can name (``[sim] world``), and their presets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flowevolve.sim.worlds.base import World
from flowevolve.sim.worlds.rules.params import RulesParams
from flowevolve.sim.worlds.rules.world import RulesWorld


def harness(params: RulesParams) -> World:
    from flowevolve.sim.worlds.harness.world import HarnessWorld  # noqa: PLC0415 - few runs need it

    return HarnessWorld(params)


def code(params: RulesParams) -> World:
    from flowevolve.sim.worlds.code.world import CodeWorld  # noqa: PLC0415 - few runs need it

    return CodeWorld(params)


def families(params: RulesParams) -> World:
    from flowevolve.sim.worlds.families.world import FamiliesWorld  # noqa: PLC0415 - few runs need it

    return FamiliesWorld(params)


WORLDS: Mapping[str, Callable[[RulesParams], World]] = {
    "rules": RulesWorld,
    "harness": harness,
    "code": code,
    "families": families,
}
