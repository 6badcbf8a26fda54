"""Peers with environments of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench._lib.methods import environments
from bench._lib.methods.environments import ENVIRONMENTS, Environment, python_of, require, variables_of, versions
from bench._lib.methods.process import METHODS, width
from bench._lib.paths import ROOT
from bench.throughput.labels import LABELS, SETTINGS
from flowevolve._util.errors import InputError


def test_every_method_has_a_name_on_the_page_and_every_peer_its_settings() -> None:
    assert set(METHODS) <= set(LABELS)
    assert all(any(method.startswith(each) for each in SETTINGS) for method in ENVIRONMENTS)
    assert width("gepa_sync") == (1, 1)
    assert width("gepa_pxn_2x8") == (2, 8)
    assert width("dspy_gepa_4x4") == (4, 4)


def test_a_method_without_an_environment_runs_here() -> None:
    assert python_of("gepa_sync") == sys.executable
    assert variables_of("gepa_sync") == {}


def test_whoever_lacks_a_package_is_told_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "ENVIRONMENTS", {"turbogepa": Environment("turbo-gepa", tmp_path, "make peers")})
    with pytest.raises(InputError, match="turbo-gepa is not installed; it comes with: make peers"):
        require(["gepa_sync", "turbogepa"])
    require(["gepa_sync", "agentdescent", "stream"])


def test_versions_are_those_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "lib" / "python3.12" / "site-packages" / "turbo_gepa-0.1.6.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: turbo-gepa\nVersion: 0.1.6\n")
    monkeypatch.setattr(environments, "ENVIRONMENTS", {"turbogepa": Environment("turbo-gepa", tmp_path, "make peers")})
    assert versions(["gepa_sync", "gepa_pxn_4x4", "turbogepa", "stream"]) == {"gepa": "0.1.4", "turbo-gepa": "0.1.6"}


def test_what_is_installed_is_pinned() -> None:
    pinned = (ROOT / "bench" / "peers" / "requirements" / "turbo-gepa.txt").read_text().splitlines()
    assert "turbo-gepa==0.1.6" in pinned
    assert all("==" in line for line in pinned)
