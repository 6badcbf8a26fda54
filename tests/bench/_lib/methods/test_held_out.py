"""What prompts are worth on rows that no method has seen."""

from __future__ import annotations

from bench._lib.house_style import perfect_prompt
from bench._lib.methods.held_out import worths
from bench._lib.methods.recording_server import PRESET
from flowevolve.sim.worlds.rules.params import PRESETS
from flowevolve.sim.worlds.rules.world import RulesWorld


def test_a_prompt_that_states_rules_is_worth_more_than_one_that_states_none() -> None:
    found = worths(["Write the text.", perfect_prompt(RulesWorld(PRESETS[PRESET]))], processes=1)
    assert list(found.values()) == sorted(found.values())
    assert max(found.values()) > 0.9
