"""What presets decide, and what they leave to the user."""

from __future__ import annotations

import pytest

from flowevolve._util.errors import InputError
from flowevolve.config.presets import PRESETS
from flowevolve.config.run import Config, parse_config, parse_recorded, with_overrides


def parsed(**table: object) -> Config:
    return parse_config({"budget": {"minutes": 1}, **table}, "test")


def test_by_default_gepa_merges_edits_and_stops_what_is_losing() -> None:
    config = parsed()
    assert all(config.algorithm.settings[name] is True for name in ("group", "prune", "remeasure"))
    assert (config.racing.policy, config.algorithm.max_in_flight) == ("confidence", "auto")
    assert config.stages["evaluate"].workers == 4


def test_the_simulated_model_can_write_what_the_task_asks_for() -> None:
    assert parsed().sim.world == "rules"
    assert parsed(task={"name": "program"}).sim.world == "code"
    assert parsed(task={"name": "program"}, sim={"world": "families"}).sim.world == "families"


@pytest.mark.parametrize(
    "section",
    [{"mode": "sync"}, {"merge": True}, {"group": False}, {"validation": "everything"}, {"name": "ace"}],
)
def test_by_default_nothing_is_decided_that_does_not_go_with_what_is_set(section: dict[str, object]) -> None:
    config = parsed(algorithm=section)
    assert not config.algorithm.settings.get("group")
    assert (config.racing.policy, config.stages) == ("off", {})


def test_what_is_set_stays_as_it_is() -> None:
    config = parsed(
        preset="careful",
        algorithm={"max_in_flight": 3, "minibatch": 5},
        stages={"evaluate": {"workers": 2, "max_workers": 2}, "screen": {"workers": 1}},
    )
    assert (config.algorithm.max_in_flight, config.algorithm.settings["minibatch"]) == (3, 5)
    assert (config.stages["evaluate"].workers, config.stages["screen"].workers) == (2, 1)
    assert config.staleness.policy == "reflective"
    assert config.staleness.settings["max_repairs"] == 3


def test_each_preset_is_a_configuration_that_is_allowed() -> None:
    for algorithm, presets in PRESETS.items():
        for name in presets:
            assert parsed(preset=name, algorithm={"name": algorithm}).preset == name
    assert parsed(preset="lockstep", algorithm={"name": "ace"}).algorithm.mode == "sync"
    assert parsed(preset="plain").algorithm.settings == {}


def test_a_preset_that_the_algorithm_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match=r"test: preset: algorithm 'ace' has no preset 'careful'; it has .*plain"):
        parsed(preset="careful", algorithm={"name": "ace"})
    with pytest.raises(InputError, match="preset"):
        parsed(preset="carefree")


def test_a_recorded_configuration_is_as_it_was_recorded() -> None:
    before_presets = {"algorithm": {"name": "gepa", "max_in_flight": 16}, "budget": {"minutes": 1}}
    config = parse_recorded(before_presets, "config.toml")
    assert config.algorithm.settings == {}
    changed = with_overrides(config, ["budget.minutes=2"])
    assert (changed.algorithm.settings, changed.racing.policy) == ({}, "off")


def test_a_decided_configuration_can_be_written_down_and_read_again() -> None:
    config = parsed(preset="flashevolve")
    table = config.model_dump(mode="json", exclude_none=True)
    assert parse_recorded(table, "config.toml") == config == parse_config(table, "config.toml")


def test_a_limit_can_be_taken_away() -> None:
    config = parse_config({"budget": {"minutes": 1, "proposals": 5}}, "run.toml")
    assert with_overrides(config, ["budget.minutes=null"]).budget.limits() == {"proposals": 5}
    with pytest.raises(InputError, match="budget: give at least one limit"):
        with_overrides(config, ["budget.minutes=null", "budget.proposals=null"])
