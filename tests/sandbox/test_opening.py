"""Settings that name a cluster where none can be used are refused in one line, before anything is begun."""

from __future__ import annotations

import sys

import pytest

from flowevolve._util.errors import InputError
from flowevolve.algorithms.meta_harness.evaluator import SandboxEvaluator
from flowevolve.config.run import parse_config
from flowevolve.core.sandbox_settings import SandboxSettings
from flowevolve.sandbox.opening import open_evaluators

ON_RAY = SandboxSettings(on="ray")


def test_without_ray_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "flowevolve.sandbox.nodes.ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"sandbox.on: 'ray' needs Ray: pip install 'flowevolve\[ray\]'"):
        open_evaluators(ON_RAY)


def test_without_submitit_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("flowevolve.sandbox.nodes.slurm", "flowevolve.sandbox.nodes.slurm_jobs"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(InputError, match=r"sandbox.on: 'slurm' needs submitit: pip install 'flowevolve\[slurm\]'"):
        open_evaluators(SandboxSettings(on="slurm"))


def test_a_cluster_needs_real_time() -> None:
    table: dict[str, object] = {"clock": "virtual", "sandbox": {"on": "ray"}, "budget": {"evaluations": 1}}
    with pytest.raises(InputError, match=r"clock 'virtual' needs sandbox.on 'here'"):
        parse_config(table, "test")


def test_harnesses_run_here() -> None:
    with pytest.raises(InputError, match=r"sandbox.on: 'ray' is for programs"):
        SandboxEvaluator(ON_RAY)
