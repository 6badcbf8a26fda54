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


ABOUT_WORLDS: Mapping[str, str] = {
    "rules": "Prompts: a house style whose rules a prompt may state; its models obey, reflect and judge.",
    "harness": "Harnesses: a coder that writes them, and a model that labels texts by the examples it is shown.",
    "code": "Programs: a coder that edits real programs at random, without knowing what they are for.",
    "families": "Programs: a landscape of known basins, built to tell algorithms apart.",
}
WORLDS: Mapping[str, Callable[[RulesParams], World]] = {
    "rules": RulesWorld,
    "harness": harness,
    "code": code,
    "families": families,
}
