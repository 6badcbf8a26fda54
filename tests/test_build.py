"""From a configuration to the objects of a run."""

from __future__ import annotations

import pytest

from flowevolve import build, clock
from flowevolve.algorithms.gepa import GEPA
from flowevolve.build import open_roles
from flowevolve.config import parse_config
from flowevolve.registry import Registry


class Navigating(GEPA):
    """An algorithm that calls a role of its own."""

    name = "navigating"
    roles = ("task", "navigator")


def test_a_run_has_the_roles_its_algorithm_calls_and_those_the_config_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ALGORITHMS", Registry("algorithm", "nowhere", {"navigating": Navigating}))
    config = parse_config(
        {
            "algorithm": {"name": "navigating"},
            "budget": {"proposals": 1},
            "llm": {"roles": {"judge": {"temperature": 0.0}}},
        },
        "test",
    )

    async def go() -> list[str]:
        async with open_roles(config) as roles:
            return list(roles)

    assert clock.run(go, clock="virtual") == ["task", "navigator", "judge"]
