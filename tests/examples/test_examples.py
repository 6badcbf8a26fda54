"""Everything that documentation shows runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flowevolve._util import clock
from flowevolve.config.run import load_config
from flowevolve.core.budget import Budget
from flowevolve.runner.result import Result
from flowevolve.runner.run import run
from tests.support.depth import LONG
from tests.support.documented import blocks

ROOT = Path(__file__).parents[2]
CONFIGS = sorted(path for path in (ROOT / "examples").rglob("*.toml") if path.name != "pyproject.toml")


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_shipped_config_is_valid(path: Path) -> None:
    load_config(path)


@pytest.mark.parametrize("name", ["quickstart.toml", "virtual.toml", "full_speed.toml"])
def test_simulated_examples_improve_on_the_seed(name: str) -> None:
    config = load_config(ROOT / "examples" / name, ["clock=virtual", "sim.profile=qwen3-8b-h100"])
    config = config.model_copy(update={"budget": Budget(minutes=10 if LONG else 3)})

    async def go() -> Result:
        return await run(config)

    result = clock.run(go, clock="virtual")
    assert result.simulated
    assert result.best is not None
    assert result.seed_score is not None
    assert result.best.score > result.seed_score


def test_the_files_of_the_tutorial_run(tmp_path: Path) -> None:
    """Its own task, as a user would save it, named in a configuration."""
    for block in blocks(ROOT / "docs" / "tutorial.md"):
        if block.title is not None:
            (tmp_path / block.title).write_text(block.code, encoding="utf-8")
    command = [sys.executable, "-m", "flowevolve", "run", "shorten.toml", "--out", "out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "on shorten" in done.stdout


def test_reference_pages_name_every_setting() -> None:
    """A setting that is not in the reference does not exist for a user."""
    page = (ROOT / "docs" / "reference" / "config.md").read_text("utf-8")
    words = set(re.findall(r"[a-z_]+", page))
    for path in CONFIGS:
        config = load_config(path)
        for section, value in config:
            assert section in words
            if hasattr(value, "model_fields_set"):
                assert set(type(value).model_fields) <= words | {"policy", "name"}


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_loop_of_ones_own_runs() -> None:
    command = [sys.executable, "examples/own_loop.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    added, best = done.stdout.splitlines()
    assert added.startswith("added c")
    assert best.startswith("best 0.")
