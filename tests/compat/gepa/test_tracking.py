"""use_wandb and use_mlflow: what gepa's own tracker is told; and switches that have no effect are warned of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from gepa.api import optimize as gepas_optimize

import flowevolve.compat.gepa as compat
from flowevolve._util.errors import InputError
from tests.support import stand_in_wandb
from tests.support.gepa_dummies import SEED, TRAIN, VAL, GEPAHashAdapter, Silent, reflect


def run(optimize: Callable[..., Any], **given: Any) -> Any:
    arguments: dict[str, Any] = {"adapter": GEPAHashAdapter(), "max_metric_calls": 100, "logger": Silent()}
    return optimize(dict(SEED), list(TRAIN), list(VAL), reflection_lm=reflect, **{**arguments, **given})


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    monkeypatch.setitem(sys.modules, "wandb", stand_in_wandb)
    stand_in_wandb.told.clear()
    stand_in_wandb.config.values.clear()
    return stand_in_wandb.told


SAME = ["val_program_average", "best_score_on_valset", "settings", "candidate_tree"]
SAME += ["selected_program_candidate", "subsample_score", "new_subsample_score", "subsample/before", "subsample/after"]
SAME += ["total_metric_calls"]
TABLES = ["candidates", "valset_scores", "valset_pareto_front"]


def test_wandb_is_told_what_gepa_tells_it(wandb: dict[str, list[Any]]) -> None:
    given = {"use_wandb": True, "wandb_init_kwargs": {"project": "prompts"}}
    run(gepas_optimize, **given)
    theirs = dict(wandb)
    wandb.clear()
    run(compat.optimize, max_in_flight=1, **given)
    theirs["candidate_tree"] = theirs["candidate_tree"][-1:]  # the last one shows all there are
    assert {name: wandb[name] for name in SAME} == {name: theirs[name] for name in SAME}
    assert wandb["iteration"][1:] == theirs["iteration"]  # ours have the seed, too
    assert wandb["summary"] == theirs["summary"]
    assert theirs["config"][0].items() >= wandb["config"][0].items()
    for name in TABLES:  # ours have the seed, too
        rows = theirs[name][-1].data
        assert wandb[name][-1].data[-len(rows) :] == rows


def test_keys_have_the_prefix_and_the_run_is_closed_after_an_error(wandb: dict[str, list[Any]]) -> None:
    class Broken(GEPAHashAdapter):
        def make_reflective_dataset(self, *given: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(compat.optimize, adapter=Broken(), use_wandb=True, tracking_key_prefix="gepa/")
    assert wandb["gepa/val_total_count"] == [len(VAL)]
    assert "summary" in wandb


@pytest.mark.parametrize("package", ["wandb", "mlflow"])
def test_a_tracker_that_is_not_installed_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowevolve.compat.gepa.tracking.find_spec", lambda name: None)
    with pytest.raises(InputError, match=f"use_{package} needs {package}.*pip install {package}"):
        run(compat.optimize, **{f"use_{package}": True})


@pytest.mark.parametrize("switch", ["cache_evaluation", "use_cloudpickle"])
def test_a_switch_without_effect_is_warned_of(switch: str) -> None:
    with pytest.warns(UserWarning, match=f"{switch} has no effect here: "):
        result = run(compat.optimize, max_in_flight=1, **{switch: True})
    assert result == run(compat.optimize, max_in_flight=1)
